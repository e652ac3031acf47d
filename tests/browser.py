"""Opens a page in headless Chromium."""

import json
import os
import re
import shutil
import subprocess

import pytest

# Tells what a page looks like once all is loaded.
_LOOK = """
<script>
window.addEventListener("load", () => parent.postMessage(JSON.stringify({
    width: window.innerWidth,
    scroll_width: document.documentElement.scrollWidth,
    pictures: Array.from(document.images, (image) => {
        const box = image.getBoundingClientRect();
        return {
            loaded: image.complete && image.naturalWidth > 0,
            left: box.left, right: box.right, height: box.height,
        };
    }),
}), "*"));
</script>
"""
# A window of Chromium is at least 500 pixels wide, a frame is not.
_FRAME = """
<!doctype html>
<link rel="icon" href="data:,">
<pre></pre>
<script>
window.addEventListener("message", ({data}) => {
    document.querySelector("pre").textContent = data;
});
</script>
<iframe src="page.html" style="width: WIDTHpx; height: 900px; border: 0">
</iframe>
"""
_MESSAGE = re.compile(r"CONSOLE[:(].*")


def look_at_page(page, tmp_path, width):
    """Returns how a page looks, and what the console says.

    Args:
        page: str. Its HTML.
        tmp_path: folder for the browser's files.
        width: int. Of the page, in pixels.
    """
    browser = next(
        filter(
            None,
            map(
                shutil.which,
                ("chromium", "chromium-browser", "google-chrome", "chrome"),
            ),
        ),
        None,
    )
    if browser is None:
        pytest.skip("no Chromium is installed")
    framed = page.replace("</body>", _LOOK + "</body>")
    (tmp_path / "page.html").write_text(framed)
    frame = tmp_path / "frame.html"
    frame.write_text(_FRAME.replace("WIDTH", str(width)))
    done = subprocess.run(
        [browser, "--headless", "--disable-gpu", "--enable-logging=stderr"]
        # A sandbox cannot be had by root.
        + ["--no-sandbox", f"--user-data-dir={tmp_path / 'profile'}"]
        + ["--no-first-run", "--disable-background-networking"]
        + ["--window-size=1600,1000", "--virtual-time-budget=5000"]
        + ["--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    (found,) = re.findall("<pre>(.*)</pre>", done.stdout)
    return json.loads(found), _MESSAGE.findall(done.stderr)
