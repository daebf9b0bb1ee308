"""A Chromium for the tests of pages: pictures at three widths, and faults that can be measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDTHS = {"phone": (390, 844), "tablet": (820, 1180), "laptop": (1280, 800)}


@contextmanager
def browser_of(path: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def watch(page: Any, site: str) -> list[str]:
    """A list to which what should never happen is added: scripts that fail, dialogs, requests to
    elsewhere."""
    troubles: list[str] = []
    page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.on(
        "request",
        lambda request: request.url.startswith((site, "data:")) or troubles.append(request.url),
    )
    return troubles


def photograph(page: Any, folder: Path, name: str, *, everywhere: bool = False) -> None:
    """The page at three widths, light and dark, or on a dark phone and a light laptop only.

    Texts too faint, pages too wide and fields without a name fail the test.
    """
    size = page.viewport_size
    some = {"phone": ["dark"], "tablet": [], "laptop": ["light"]}
    for device, (width, height) in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark") if everywhere else some[device]:
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=folder / f"{name}-{device}-{scheme}.png", full_page=True)
            assert page.evaluate(FAINT_TEXTS) == [], (name, device, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, device)
    assert page.evaluate(UNNAMED_FIELDS) == [], name
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(size)


FAINT_TEXTS = """() => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => linear(Number(v) / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (one) => {
        for (let at = one; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (colour !== "rgba(0, 0, 0, 0)") return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const written = (node) => node.nodeType === 3 && node.data.trim();
    const hasText = (one) => [...one.childNodes].some(written);
    const contrast = (one) => {
        const both = [light(getComputedStyle(one).color), light(ground(one))];
        return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    };
    return [...document.querySelectorAll("body *")]
        .filter((one) => hasText(one) && contrast(one) < 4.5)
        .map((one) => one.tagName + ": " + one.textContent.trim().slice(0, 40));
}"""
"""Texts whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3)."""

UNNAMED_FIELDS = """() => [
    ...document.querySelectorAll("input:not([type=hidden]), textarea, button, fieldset")
].filter((one) => !(one.labels?.length || one.textContent.trim() || one.querySelector("legend")))
 .map((one) => one.outerHTML)"""
"""Fields without a label, buttons without a text, groups without a legend (WCAG 2.2, 4.1.2)."""
