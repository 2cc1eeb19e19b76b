from __future__ import annotations

import pkgutil
from types import ModuleType

from fathometer import compare


def test_no_function_hides_a_module() -> None:
    for module in pkgutil.iter_modules(compare.__path__):
        assert isinstance(getattr(compare, module.name), ModuleType), module.name


def test_the_list_of_names_is_whole() -> None:
    assert all(hasattr(compare, name) for name in compare.__all__)
    assert sorted(compare.__all__, key=lambda name: (name[0].islower(), name)) == compare.__all__
