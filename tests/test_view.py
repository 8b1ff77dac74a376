"""The page of ``rackloom view`` in a real browser: by mouse, by keyboard, on a narrow screen."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pyarrow import parquet

import rackloom

SCENARIO = """
name = "view"
seed = 3
[run]
flows = {flows}
trace = "slowest 20"
[workload]
kind = "poisson"
load = 0.6
sizes = {{ kind = "fixed", size = "20 KB" }}
[fabric]
kind = "packet-switched"
nodes = 16
"""
TRACE = 'trace = "slowest 20"\n'
FABRICS = """
[[fabric]]
kind = "shoal"
nodes = 16
[[fabric]]
kind = "packet-switched"
nodes = 16
"""
# A page that does not answer in so many milliseconds is frozen, on however slow a machine.
PATIENCE = 30_000


def chromium() -> str:
    found = os.environ.get("RACKLOOM_CHROMIUM") or shutil.which("chromium")
    if not found:
        pytest.skip("no Chromium (install it, or name one in RACKLOOM_CHROMIUM)")
    return found


@pytest.fixture(scope="module")
def results(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a record of packets, a comparison, a sweep, and where there is Optuna a search."""
    place = tmp_path_factory.mktemp("view")
    (place / "run.toml").write_text(SCENARIO.format(flows=600))
    several = SCENARIO.format(flows=200).replace(TRACE, "").split("[fabric]")[0]
    (place / "several.toml").write_text(several + FABRICS)
    for arguments in [
        ["run", "run.toml", "--out", "results/traced"],
        ["run", "run.toml", "--set", 'run.trace="flows 1"', "--out", "results/other/one"],
        ["compare", "several.toml", "--out", "results/both"],
        ["sweep", "several.toml", "--grid", "workload.load=0.2,0.4", "--out", "results/grid"],
    ]:
        subprocess.run([binary, *arguments, "--quiet"], cwd=place, check=True, capture_output=True)
    if importlib.util.find_spec("optuna"):
        search = (
            "--over workload.load=0.2,0.4 --minimise fct.all.p99 --maximise throughput.mean_node"
        )
        command = [sys.executable, "-m", "rackloom", "search", "several.toml", *search.split()]
        command += ["--trials", "4", "--out", "results/found", "--quiet"]
        subprocess.run(command, cwd=place, check=True, capture_output=True)
    return place / "results"


@contextmanager
def served(*command: str | Path) -> Iterator[str]:
    """The address that the command prints; afterwards Ctrl-C, which has to end it well."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        assert process.poll() is None, "the command has ended by itself"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def address(binary: Path, results: Path) -> Iterator[str]:
    with served(binary, "view", results) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that may complain of nothing, and load nothing from elsewhere."""
    context = browser.new_context(viewport={"width": 1300, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    foreign: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("http://127.0.0.1:", "data:", "blob:"))
            else foreign.append(request.url)
        ),
    )
    yield page
    context.close()
    assert foreign == []
    # A browser says so of each answer that is an error, which some tests ask for.
    assert [text for text in complaints if "Failed to load resource" not in text] == []


def shown(page: Page, address: str, path: str) -> None:
    page.goto(f"{address}#{path}")
    expect(page.locator("body")).to_have_attribute("data-shown", path, timeout=PATIENCE)


def drag(page: Page, plot: int, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drags a box over the plot with this number, in parts of its width and height."""
    area = page.locator(".plots.flows .plot").nth(plot).locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=6)
    page.mouse.up()


def count(page: Page) -> int:
    return int(page.inner_text("#count").split()[0].replace(",", ""))


def test_slow_runs_are_picked_and_flows_chosen_in_one_plot_are_marked_in_all(
    page: Page, address: str, results: Path
) -> None:
    page.goto(address)
    page.locator("#list a", has_text="traced").click()
    expect(page.locator("body")).to_have_attribute("data-shown", "traced")
    tiles = page.locator(".tile .value")
    summary = json.loads((results / "traced/summary.json").read_text())
    expect(tiles.first).to_have_text(str(summary["flows"]["measured"]))
    assert count(page) == 600

    # The upper half of the slowdowns that are drawn, however large the flow.
    drag(page, 0, (0.01, 0.01), (0.99, 0.5))
    expect(page.locator("#count")).to_contain_text("flows chosen")
    chosen = count(page)
    assert 0 < chosen < 600
    # What the fields say is what was chosen: by the table of the run, read by another program.
    table = parquet.read_table(results / "traced/flows.parquet").to_pandas()
    lowest = float(page.input_value("input[aria-label='Slowdown, from']"))
    measured = table[table["measured"]]
    near = [int((measured["slowdown"] >= lowest * part).sum()) for part in (1.006, 0.994)]
    assert near[0] <= chosen <= near[1]
    slowest = measured.sort_values("slowdown", ascending=False).iloc[0]
    first = page.locator("#flows tbody tr").first
    expect(first).to_have_attribute("data-flow", str(slowest["flow_id"]))
    # Two traces in each of the three plots: all, and the chosen.
    for plot in range(3):
        traces = page.locator(".plots.flows .plot").nth(plot).locator(".legendtext")
        expect(traces).to_have_count(2)

    # A range of another plot holds together with the first.
    drag(page, 2, (0.05, 0.5), (0.5, 0.5))
    expect(page.locator("#count")).not_to_contain_text(f"{chosen} of")
    assert 0 < count(page) < chosen
    page.click("text=Clear")
    expect(page.locator("#count")).to_contain_text("none chosen")


def test_slow_a_click_tells_where_the_time_of_a_flow_went(
    page: Page, address: str, results: Path, binary: Path
) -> None:
    shown(page, address, "traced")
    number = page.locator("#flows tbody tr").first.get_attribute("data-flow")
    page.locator("#flows tbody button").first.click()
    dialog = page.locator("#why")
    expect(dialog.locator("h2")).to_have_text(f"Flow {number}")
    # What the command says of it.
    said = subprocess.run(
        [binary, "why", results / "traced", str(number), "--format", "json"],
        check=True,
        capture_output=True,
    )
    parts = json.loads(said.stdout)["parts"]
    # The sum stands below the parts.
    expect(dialog.locator(".parts tbody tr")).to_have_count(len(parts) + 1)
    widths = dialog.locator(".bar-of-time").evaluate_all(
        "bars => bars.map(bar => bar.getBoundingClientRect().width)"
    )
    longest = max(range(len(parts)), key=lambda at: parts[at]["ps"])
    assert widths[longest] == max(widths) > 0
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()

    # Of a flow that was not recorded the page says how to have it.
    shown(page, address, "other/one")
    page.locator("#flows tbody button").first.click()
    expect(dialog.locator("[role=alert]")).to_contain_text('run.trace="flows ')


def test_slow_the_network_changes_with_the_slider(page: Page, address: str) -> None:
    shown(page, address, "traced")
    wires = page.locator(".rack .wire")
    assert wires.count() > 10
    before = wires.evaluate_all("all => all.map(one => one.textContent)")
    slider = page.locator("#instant")
    slider.focus()
    said = page.inner_text(".slide output")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".slide output")).not_to_have_text(said)
    page.keyboard.press("Home")
    after = wires.evaluate_all("all => all.map(one => one.textContent)")
    assert before != after
    # Of a run that recorded nothing the page says which key does.
    page.goto(f"{address}#both/shoal")
    expect(page.locator("body")).to_have_attribute("data-shown", "both/shoal")
    expect(page.locator("#content")).to_contain_text("run.trace")


def test_slow_everything_is_reached_by_the_keyboard_alone(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("body")).to_have_attribute("data-shown", "both")
    page.locator("#filter").focus()
    page.keyboard.type("traced")
    expect(page.locator("#list a")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_have_attribute("data-shown", "traced")
    # The content has the focus: the next stop is its first link, then plots and fields.
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.ariaLabel") == "Completion time, from":
            break
    else:
        pytest.fail("the fields are not reached")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus does not show"
    page.keyboard.type("20 us")
    page.keyboard.press("Enter")
    expect(page.locator("#count")).to_contain_text("of 600 flows chosen")
    expect(page.locator("input[aria-label='Completion time, from']")).to_have_value("20 µs")
    page.locator("#flows tbody button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#why")).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "link", "the focus is lost"
    # What is no quantity is said, and chooses nothing.
    page.fill("input[aria-label='Size, from']", "many")
    page.keyboard.press("Enter")
    expect(page.locator(".choose [role=alert]")).to_contain_text("Size")


def test_slow_a_narrow_screen_has_room_for_all(page: Page, address: str, results: Path) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    paths = ["traced", "both", "grid"]
    for path in [*paths, "found"] if (results / "found").exists() else paths:
        shown(page, address, path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, f"{path} is {width} wide"
    expect(page.locator("#side")).not_to_be_visible()
    page.click("#menu")
    expect(page.locator("#filter")).to_be_focused()
    page.locator("#list a", has_text="traced").click()
    expect(page.locator("body")).to_have_attribute("data-shown", "traced")
    expect(page.locator("#side")).not_to_be_visible()
    page.locator("#flows tbody button").first.click()
    box = page.locator("#why").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360


def test_slow_comparisons_and_sweeps_lead_to_their_runs(page: Page, address: str) -> None:
    shown(page, address, "grid")
    rows = page.locator("main table tbody tr")
    expect(rows).to_have_count(4)
    rows.first.locator("a").click()
    expect(page.locator(".tile").first).to_be_visible()
    page.locator(".masthead a").click()
    expect(page.locator("body")).to_have_attribute("data-shown", "grid")
    page.select_option("#figure", label="FCT of short flows, 99%")
    expect(page.locator("main .plot .ytitle").first).to_contain_text("FCT of short flows")
    shown(page, address, "both")
    expect(page.locator("main table tbody tr")).to_have_count(2)
    # The stored reports are shown, apart from the page: that of a sweep has its library beside it.
    for path in ["both", "grid"]:
        shown(page, address, path)
        with page.context.expect_page() as opened:
            page.locator("main a", has_text="Its report").click()
        report = opened.value
        expect(report.locator("body")).to_have_attribute(
            "data-plots-drawn", re.compile(r"^[1-9]"), timeout=PATIENCE
        )
        assert report.evaluate("origin") == "null"
        report.close()


DRAWN = """plot => document.querySelectorAll("#curves .plot")[plot].data
    .map(trace => [trace.name, Array.from(trace.x), Array.from(trace.y)])"""


def test_slow_curves_of_fabrics_lie_over_each_other(
    page: Page, address: str, results: Path
) -> None:
    shown(page, address, "both")
    expect(page.locator("#curves [role=status]")).to_have_text("")
    curves = page.evaluate(DRAWN, 1)
    assert [name for name, *_ in curves] == ["packet-switched", "shoal"]
    for name, times, shares in curves:
        table = parquet.read_table(results / "both" / name / "flows.parquet").to_pandas()
        measured = table[table["measured"]]
        took = (measured["end_ps"] - measured["start_ps"]) / 1e12
        assert [times[0], times[-1]] == pytest.approx([took.min(), took.max()])
        assert shares[-1] == 1
        # The share of flows within each of the times that are drawn.
        for at in range(0, len(times), 20):
            assert shares[at] == pytest.approx((took <= times[at] * (1 + 1e-12)).mean(), abs=0.02)
    # All flows have 20 KB, between 16 and 32 KiB: one point a fabric.
    tails = page.evaluate(DRAWN, 0)
    for name, sizes, slowdowns in tails:
        table = parquet.read_table(results / "both" / name / "flows.parquet").to_pandas()
        expected = table[table["measured"]]["slowdown"].sort_values().iloc[198 - 1]
        assert (len(sizes), 2**14 < sizes[0] < 2**15) == (1, True)
        assert slowdowns[0] == pytest.approx(expected)
    page.select_option("#curves-quantity", label="Completion time, median")
    expect(page.locator("#curves .plot").first.locator(".ytitle")).to_contain_text("median")


def test_slow_curves_of_a_sweep_go_over_fabrics_or_settings(page: Page, address: str) -> None:
    shown(page, address, "grid")
    expect(page.locator("#curves [role=status]")).to_have_text("")
    light = page.evaluate(DRAWN, 1)
    assert [name for name, *_ in light] == ["shoal", "packet-switched"]
    page.select_option("#curves-at", label="workload.load 0.4")
    expect(page.locator("#curves [role=status]")).to_have_text("")
    page.wait_for_function(
        f"light => JSON.stringify(({DRAWN})(1)) !== light", arg=json.dumps(light)
    )
    page.select_option("#curves-over", label="workload.load")
    page.wait_for_function(
        "() => document.querySelectorAll('#curves .plot')[1].data[0].name === '0.2'"
    )
    assert [name for name, *_ in page.evaluate(DRAWN, 1)] == ["0.2", "0.4"]


def test_slow_the_front_of_a_search_is_drawn_over_its_aims(
    page: Page, address: str, results: Path
) -> None:
    if not (results / "found").exists():
        pytest.skip("no Optuna (pip install 'rackloom[search]')")
    shown(page, address, "found")
    expect(page.locator("#figure")).to_contain_text("hroughput")
    heads = page.locator("main th").all_inner_texts()
    assert sum(head.startswith("Fabric") for head in heads) == 1, heads
    trials = parquet.read_table(results / "found/trials.parquet").to_pandas()
    front = trials[trials["is_best"]].sort_values("fct.all.p99")
    found = page.evaluate(
        """() => document.querySelector("main .plot").data
        .map(trace => [trace.name, trace.mode, [...trace.x], [...trace.y]])"""
    )
    name, mode, times, rates = found[0]
    assert (name, mode) == ("Front", "lines+markers")
    assert times == pytest.approx(list(front["fct.all.p99"]))
    assert rates == pytest.approx(list(front["throughput.mean_node"]))
    assert sum(len(kind[2]) for kind in found) == len(trials)
    # Below it, the curves of the front's trials, each by what was searched.
    best = [f"{row['set.workload.load']}, {row['label']}" for _, row in front.iterrows()]
    assert sorted(name for name, *_ in page.evaluate(DRAWN, 1)) == sorted(best)


def test_slow_a_run_under_way_is_followed_to_its_end(
    page: Page, binary: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (tmp_path / "long.toml").write_text(SCENARIO.format(flows=1_000_000).replace(TRACE, ""))
    (tmp_path / "short.toml").write_text(SCENARIO.format(flows=100))
    command: list[str | Path] = [binary, "run", "--quiet", "--out"]
    short = [*command, results / "short", tmp_path / "short.toml"]
    subprocess.run(short, check=True, capture_output=True)
    long = [*command, results / "long", tmp_path / "long.toml"]
    run = subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with served(binary, "view", results) as address:
            page.goto(address)
            line = page.locator("#list li[data-path=long]")
            expect(line.locator("progress")).to_be_visible(timeout=PATIENCE)
            line.locator("a").click()
            status = page.locator("main [role=status]")
            expect(status).to_contain_text("of 1,000,000 flows", timeout=PATIENCE)
            before = page.inner_text("main [role=status]")
            expect(status).not_to_have_text(before, timeout=PATIENCE)
            # Interrupted, it stores what it has: the page turns into its results by itself.
            run.send_signal(signal.SIGINT)
            assert run.wait(60) == 130
            expect(page.locator("main .warning").first).to_contain_text(
                "interrupted", timeout=PATIENCE
            )
            expect(page.locator("#count")).to_contain_text("flows")
            assert not (results / "long/progress.json").exists()
    finally:
        run.kill()
        run.wait()


def test_the_package_has_the_command_too(results: Path) -> None:
    with served(sys.executable, "-m", "rackloom", "view", results) as address:
        assert address.startswith("http://127.0.0.1:")


def test_python_serves_the_page_until_it_is_closed(results: Path, tmp_path: Path) -> None:
    with rackloom.view(results) as view:
        connection = HTTPConnection(view.url.removeprefix("http://").strip("/"))
        connection.request("GET", "/api/list")
        paths = [entry["path"] for entry in json.load(connection.getresponse())["entries"]]
        connection.close()
        assert {"traced", "both", "both/shoal", "grid"} <= set(paths)
        assert view.url in repr(view)
    with pytest.raises(ConnectionRefusedError):
        connection.request("GET", "/api/list")
    with pytest.raises(rackloom.InputError, match="holds no results") as refused:
        rackloom.view(tmp_path)
    assert refused.value.problems[0].file == str(tmp_path)


def test_a_directory_without_results_is_said_and_nothing_is_served(
    binary: Path, tmp_path: Path
) -> None:
    for place, words in [(tmp_path, "holds no results"), (tmp_path / "absent", "No such file")]:
        said = subprocess.run([binary, "view", place], capture_output=True, text=True, check=False)
        assert said.returncode == 2
        assert said.stdout == ""
        assert said.stderr.startswith(f"{place}: ")
        assert words in said.stderr
        assert said.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_named(binary: Path, results: Path) -> None:
    with served(binary, "view", results) as address:
        port = address.rsplit(":", 1)[1].strip("/")
        said = subprocess.run(
            [binary, "view", results, "--port", port], capture_output=True, text=True, check=False
        )
        assert said.returncode == 1
        assert f"--port {port}: " in said.stderr
