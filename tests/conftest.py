"""What all tests share: repeatable random examples, and an object store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The same examples in every run: a failure can be repeated.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """Make a bucket on an S3 server on this machine.

    There is one server for all tests, because fsspec keeps its connections for the whole process.
    """
    import fsspec

    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*server.get_host_and_port()))
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        name = f"s3://b{uuid.uuid4().hex[:8]}"
        fsspec.filesystem("s3").mkdir(name)
        yield name
    server.stop()
