"""The film of a training, in Chromium."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fathometer.capture.sites import Site
from fathometer.history import History
from fathometer.report.page.film import history_page
from fathometer.sounding import Sounding
from tests.browser.conftest import OpenPage, overflow
from tests.report.page.test_film import history

SCRIPT = "<script>alert(1)</script>"
FRAME, MAP, METRIC = ("[data-part=frame]", "[data-part=map]", "[data-part=metric]")


def opened(open_page: OpenPage, found: History, **settings: object) -> object:
    tab = open_page(history_page(found), **settings)
    for part in (FRAME, MAP, METRIC):
        tab.wait_for_selector(f"{part}[data-ready=true]")
    return tab
