"""The chart library, Vega-Lite with all it needs, as one script that goes into the page (0.9 MB)."""

from __future__ import annotations

from functools import cache

from fathometer.errors import MissingExtraError


@cache
def chart_library() -> str:
    """JavaScript that defines `vegaEmbed`, of the version that altair writes for; it needs no network."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    code = str(vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;", vl_version=version))
    return code.replace("</script", "<\\/script")


def require_report() -> None:
    """Fail early, and say which extra is missing."""
    for package in ("altair", "jinja2", "vl_convert"):
        try:
            __import__(package)
        except ImportError as error:
            raise MissingExtraError(package, "report", "an HTML report") from error
