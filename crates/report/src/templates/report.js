// Makes a report comfortable: sorts and searches its tables, shows the values of charts and saves them. Nothing needs it to be read.
"use strict";
{
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const make = (tag, more, ...kids) => {
    const made = Object.assign(document.createElement(tag), more);
    made.append(...kids);
    return made;
  };

  // Tables: a click on a heading sorts by its column.
  const UNITS = {
    ns: 1e-9, "µs": 1e-6, ms: 1e-3, min: 60, h: 3600, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
  };
  const said = (cell) => [...(cell?.childNodes ?? [])].filter((n) => n.nodeType === 3 || n.tagName === "A").map((n) => n.textContent).join("").trim();
  const number = (text) => {
    if (/^\d{4}-\d\d-/.test(text)) return NaN; // A date sorts as text.
    const [found, digits, unit] = /^[<≤+]?\s*([-−]?[\d,]*\.?\d+)(?:\s*([^\s\d]+))?/.exec(text) ?? [];
    if (found === undefined) return NaN;
    // `2 min 05 s` and `1 h 03 min` have two parts.
    const [, more, small] = ["min", "h"].includes(unit) ? /^ (\d+) (min|s)\b/.exec(text.slice(found.length)) ?? [] : [];
    return digits.replaceAll(",", "").replace("−", "-") * (UNITS[unit] ?? 1) + (more ?? 0) * (UNITS[small] ?? 1);
  };
  const before = (a, b) => {
    const [x, y] = [number(a), number(b)];
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || a.localeCompare(b);
    return x - y;
  };
  // A row that leaves out what the row above has says it, before rows change places.
  const fill = (rows) => {
    for (let at = 0; rows.slice(1).some((row) => row.cells[at] && !said(row.cells[at])) && said(rows[0].cells[at]); at++) {
      rows.reduce((above, row) => {
        if (!said(row.cells[at])) row.cells[at].textContent = said(above.cells[at]);
        return row;
      });
    }
  };
  const sort = (table, at) => {
    const heads = [...table.tHead.rows[0].cells];
    const down = heads[at].getAttribute("aria-sort") === "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
    const groups = [[]];
    for (const row of [...table.tBodies[0].rows]) {
      if (row.classList.contains("title")) groups.push([[row]], []);
      // A remark stays below its row.
      else if (row.classList.contains("remark")) groups.at(-1).at(-1)?.push(row);
      else groups.at(-1).push([row]);
    }
    for (const group of groups) {
      if (group.length > 1) fill(group.map(([row]) => row));
      const of = ([row]) => said(row.cells[at]);
      group.sort((a, b) => (isNaN(number(of(a))) || isNaN(number(of(b))) || !down ? 1 : -1) * before(of(a), of(b)));
      if (down && group.every((row) => isNaN(number(of(row))))) group.reverse();
      group.flat().forEach((row) => table.tBodies[0].append(row));
    }
  };
  for (const table of all("main table")) {
    if (table.tBodies[0].rows.length < 3) continue;
    all("th[scope=col]", table).forEach((head, at) => {
      if (!head.textContent.trim()) return;
      head.tabIndex = 0;
      head.classList.add("sorts");
      head.onclick = () => sort(table, at);
      head.onkeydown = (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          sort(table, at);
        }
      };
    });
  }
  // What can be moved sideways can be moved by keyboard.
  const reach = () => all(".scroll").forEach((part) => {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  });
  reach();
  addEventListener("resize", reach);

  // The search hides rows and charts without the words.
  const contents = document.querySelector(".contents");
  const parts = () => all("main tbody tr:not(.title), main .chart");
  if (contents && parts().length > 20) {
    const found = make("output", { className: "found" });
    const box = make("input", { type: "search", placeholder: "Search tests", ariaLabel: "Search tests, tables and charts" });
    let searched;
    box.oninput = () => {
      searched ??= parts().map((part) => [part, part.textContent.toLowerCase()]);
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let kept = false;
      let count = 0;
      for (const [part, text] of searched) {
        const remark = part.classList.contains("remark");
        kept = remark && kept ? true : words.every((word) => text.includes(word));
        part.hidden = !kept;
        if (kept && !remark) count++;
        if (kept && words.length) part.closest("details")?.setAttribute("open", "");
      }
      for (const part of all("main figure, main .charts")) part.hidden = !all("tbody tr:not(.title), .chart", part).some((row) => !row.hidden);
      found.textContent = words.length ? `${count} rows and charts` : "";
    };
    contents.prepend(box, found);
  }

  // Charts: the value that is nearest to the pointer, or chosen with the arrow keys.
  const tip = make("div", { className: "tip", hidden: true, role: "status" });
  document.body.append(tip);
  const label = (svg, which) => all(".ax", svg)[which]?.textContent || ["y", "x"][which];
  const points = (svg) => {
    const found = [];
    for (const shape of all("[data-v]", svg)) {
      const [x, ...values] = shape.dataset.v.split(";");
      const title = shape.querySelector("title");
      const box = shape.getBBox();
      found.push({
        series: shape.closest("[data-n]")?.dataset.n ?? "", x, values, text: title?.textContent,
        at: [box.x + box.width / 2, box.y + (shape.tagName === "rect" && box.height > 9 ? 0 : box.height / 2)],
      });
      title?.remove();
    }
    for (const line of all("[transform] > polyline", svg)) {
      const m = line.parentNode.transform.baseVal.consolidate().matrix;
      const series = line.closest("[data-n]")?.dataset.n ?? "";
      for (const pair of line.getAttribute("points").split(" ")) {
        const [x, y] = pair.split(",");
        found.push({ series, x, values: [y], at: [m.a * x + m.e, m.d * y + m.f] });
      }
    }
    return found;
  };
  const csv = (svg, of) => {
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = [["series", label(svg, 1), label(svg, 0), "low", "high"], ...of.map((p) => [p.series.replace(/^[=+@-]/, "'$&"), p.x, ...p.values])];
    return lines.map((line) => line.map(quoted).join(",") + "\n").join("");
  };
  for (const chart of all(".chart")) {
    const svg = chart.querySelector("svg[role=img]");
    if (!svg) continue;
    let known;
    let chosen = -1;
    const of = () => (known ??= points(svg));
    const ring = document.createElementNS(svg.namespaceURI, "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", 6);
    const hide = () => {
      tip.hidden = true;
      ring.remove();
    };
    const show = (at) => {
      chosen = at;
      const point = of()[at];
      if (!point) return hide();
      tip.textContent = point.text ?? `${point.series ? `${point.series}: ` : ""}${point.x} → ${Number(point.values[0]).toLocaleString("en")}`;
      ring.setAttribute("cx", point.at[0]);
      ring.setAttribute("cy", point.at[1]);
      svg.append(ring);
      tip.hidden = false;
      const place = new DOMPoint(...point.at).matrixTransform(svg.getScreenCTM());
      tip.style.left = `${Math.max(4, Math.min(place.x + 12, innerWidth - tip.offsetWidth - 4))}px`;
      tip.style.top = `${Math.max(4, place.y - tip.offsetHeight - 10)}px`;
    };
    svg.addEventListener("pointermove", (event) => {
      const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      let [best, nearest] = [-1, 1600];
      of().forEach(({ at: [x, y] }, index) => {
        const far = (x - p.x) ** 2 + (y - p.y) ** 2;
        if (far < nearest) [best, nearest] = [index, far];
      });
      show(best);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.tabIndex = 0;
    svg.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!by) return;
      event.preventDefault();
      const here = of()[chosen];
      const other = (point) => event.key.endsWith("t") || point.series !== here?.series;
      let next = chosen + by;
      // Up and down go to the same place of the series before and after.
      while (here && of()[next] && !(other(of()[next]) && (event.key.endsWith("t") || of()[next].x === here.x))) next += by;
      if (of()[next]) show(next);
    });
    const save = make("button", { type: "button", className: "save", title: "Save the data of this chart as CSV" }, "CSV");
    save.onclick = () => {
      const url = URL.createObjectURL(new Blob([csv(svg, of())], { type: "text/csv" }));
      const name = svg.getAttribute("aria-label").replace(/[^\w-]+/g, "-").replace(/-$/, "");
      make("a", { href: url, download: `${name}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    };
    chart.prepend(save);
  }
}
