// A training as a film: choose a step, or let it play; look at all steps at once, and at what changed.
Views.film = class {
  constructor(element, data, charts) {
    const last = data.steps.length - 1, names = Object.keys(data.metrics);
    Object.assign(this, { data, charts, gauge: data.gauges[0], last, at: last, timer: null, edges: data.edges });
    this.metric = names.find((name) => /loss/i.test(name)) ?? names[0] ?? null;
    element.replaceChildren(...this.parts());
    this.show(this.gauge);
  }

  parts() {
    const { gauges, steps, metrics, left_out } = this.data, names = Object.keys(metrics);
    [this.frame, this.map, this.logged] = ["frame", "map", "metric"].map(chartPlace);
    this.button = make("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggle() }, "▶ Play");
    this.slider = make("input", { type: "range", min: 0, max: this.last, step: 1, "aria-label": "Step", oninput: () => this.seek(Number(this.slider.value)) });
    this.now = make("figcaption", { "data-now": true });
    this.change = make("div", { "data-part": "change" });
    this.mark = make("div", { class: "mark", "aria-hidden": "true" });
    this.watch = new ResizeObserver(() => this.outline());
    const few = this.last < 1;
    this.stage = make("div", { class: "stage", role: "group", "aria-label": "Film: space plays, arrow keys step", tabindex: few ? null : "0" },
      figureOf(this.frame, this.now),
      few ? null : make("div", { class: "controls transport" }, this.button, this.slider));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    const options = gauges.map((name) => [name, label(name)]);
    return [
      make("div", { class: "controls" }, chooser("Gauge", options, this.gauge, (name) => this.show(name))),
      left_out ? make("p", { class: "note" }, `${left_out} steps are left out here, evenly; the history has them.`) : null,
      this.stage,
      ...(few ? [] : [make("h3", {}, "Every site at every step"),
        make("p", { class: "note" }, `A column is a sounding, ${steps.length} in total; the outlined one is shown above. Choose a column to see it.`),
        figureOf(this.map)]),
      ...(names.length ? [make("h3", {}, "Metrics during training"),
        names.length > 1 ? make("div", { class: "controls" },
          chooser("Metric", names.map((name) => [name, name]), this.metric, (name) => this.showMetric(name))) : null,
        figureOf(this.logged)] : []),
      make("h3", {}, "First and last step"), this.change,
    ].filter(Boolean);
  }

  /** Everything for one gauge. */
  async show(gauge) {
    this.gauge = gauge;
    const { extent, sites } = this.data, name = label(gauge);
    this.tell();
    this.table();
    this.showMetric(this.metric);
    if (extent[gauge] === null) {
      for (const place of [this.frame, this.map]) undraw(place, make("p", { class: "note" }, `${name} has no value at any site.`));
      return;
    }
    const axes = { depth: [-0.5, sites.site.length - 0.5], reach: [this.edges[0], this.edges[this.last + 1]] };
    const fixed = { ...axes, span: extent[gauge], operators: [...new Set(sites.operator)].sort() };
    draw(this.frame, this.spec("frame", { gauge: name }, fixed), { blocks: bandsOf(this.data.blocks), first: this.rows(0), sites: this.rows(this.at) }).then(() => this.paint());
    if (this.last < 1) return;
    const height = Math.min(420, Math.max(120, 6 * sites.site.length));
    draw(this.map, { ...this.spec("map", { gauge: name }, axes), height }, { cells: this.cells() },
      (row) => row.frame !== undefined && this.seek(row.frame)).then(() => this.paint());
  }

  /** A chart with its words, and with what its axes show. */
  spec(chart, words, params) {
    return withParams(filled(this.charts[chart], words), params);
  }

  /** The sites at one step. */
  rows(frame) {
    const { sites, frames, errors, steps } = this.data, name = label(this.gauge);
    const values = frames[this.gauge][frame], before = frames[this.gauge][0], spread = errors[this.gauge]?.[frame];
    return siteRows(sites, values, spread, (i) => [...["operator", "block", "features"].map((fact) => [fact, sites[fact][i]]),
      [name, withError(values[i], spread?.[i])], [`step ${steps[0]}`, number(before[i])]]);
  }

  cells() {
    const { sites, frames, steps } = this.data, name = label(this.gauge), cells = [];
    const seam = (this.edges[this.last + 1] - this.edges[0]) / 2000; // a little over the next column, or a line shines through
    frames[this.gauge].forEach((values, frame) => values.forEach((value, i) => {
      if (value === null) return;
      const begin = this.edges[frame], end = this.edges[frame + 1] + (frame < this.last ? seam : 0);
      cells.push({ begin, end, top: i - 0.5, bottom: i + (i < values.length - 1 ? 0.55 : 0.5), value, frame, tip: tipOf(sites.site[i], ["step", steps[frame]], [name, number(value)]) });
    }));
    return cells;
  }

  /** A frame around the column of this step; over the chart, which has too many cells to be drawn at every step. */
  outline() {
    const view = drawn.get(this.map)?.view, canvas = this.map.querySelector("canvas");
    if (!view || !canvas) return;
    if (this.mark.previousElementSibling !== canvas) { // the chart is new
      canvas.after(this.mark);
      this.watch.disconnect();
      this.watch.observe(canvas);
    }
    const [x, y] = view.origin(), around = view.padding(), scale = view.scale("x");
    const [begin, end] = [scale(this.edges[this.at]), scale(this.edges[this.at + 1])];
    const across = { left: around.left + x + begin, width: end - begin }, down = { top: around.top + y, height: view.height() };
    for (const [side, pixels] of Object.entries(across)) this.mark.style[side] = `${100 * pixels / canvas.clientWidth}%`;
    for (const [side, pixels] of Object.entries(down)) this.mark.style[side] = `${100 * pixels / canvas.clientHeight}%`;
  }

  showMetric(name) {
    this.metric = name;
    if (name === null) return;
    const { step, value } = this.data.metrics[name];
    const rows = step.map((at, i) => ({ step: at, value: value[i], tip: tipOf(name, ["step", at], ["value", number(value[i])]) }))
      .filter((row) => row.value !== null);
    if (!rows.length) {
      undraw(this.logged, make("p", { class: "note" }, `${name} has no finite value.`));
      return;
    }
    const all = rows.map((row) => row.value), least = Math.min(...all);
    const axis = least > 0 && Math.max(...all) > 30 * least ? "log" : "linear";
    const { steps } = this.data, reach = [Math.min(steps[0], rows[0].step), Math.max(steps[this.last], rows.at(-1).step)];
    draw(this.logged, this.spec(`metric-${axis}`, { metric: name }, { reach }), { rows, now: this.marker() }, (row) => row.tip && this.seek(this.nearest(row.step))).then(() => this.paint());
  }

  marker() {
    return [{ step: this.data.steps[this.at] }];
  }

  nearest(step) {
    const far = this.data.steps.map((at) => Math.abs(at - step));
    return far.indexOf(Math.min(...far));
  }

  /** Go to a step, and stay there. */
  seek(frame) {
    this.stop();
    this.go(frame);
  }

  go(frame) {
    this.at = Math.min(Math.max(frame, 0), this.last);
    this.tell();
    this.paint();
  }

  /** New rows for charts that stand: nothing is drawn again, so that playing is smooth. */
  paint() {
    this.renew(this.frame, "sites", this.rows(this.at));
    this.outline();
    this.renew(this.logged, "now", this.marker());
    this.stage.dataset.step = this.data.steps[this.at];
  }

  renew(element, name, rows) {
    const kept = drawn.get(element);
    if (!kept) return;
    kept.datasets[name] = rows; // for when colours change
    kept.view?.data(name, rows).runAsync();
  }

  tell() {
    const { steps, metrics } = this.data, step = steps[this.at];
    const logged = Object.entries(metrics).map(([name, { at }]) => [name, at[this.at]])
      .filter(([, value]) => value !== null).map(([name, value]) => `${name} ${number(value)}`);
    const before = this.at > 0 ? ` Hollow: step ${steps[0]}.` : "";
    this.now.textContent = `Step ${step} of ${steps[this.last]}${logged.length ? `: ${logged.join(", ")}` : ""}.${before}`;
    this.slider.value = this.at;
    this.slider.setAttribute("aria-valuetext", `step ${step}`);
  }

  toggle() {
    if (this.timer !== null) this.stop();
    else this.play();
  }

  /** From here to the end, in eight seconds or so; from the start if the end was reached. */
  play() {
    if (this.last < 1) return;
    if (this.at === this.last) this.go(0);
    const pause = Math.min(600, Math.max(60, 8000 / (this.last + 1)));
    this.timer = setInterval(() => {
      this.go(this.at + 1);
      if (this.at === this.last) this.stop();
    }, pause);
    this.showPlaying(true);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.showPlaying(false);
  }

  showPlaying(playing) {
    this.button.textContent = playing ? "⏸ Pause" : "▶ Play";
    this.button.setAttribute("aria-pressed", String(playing));
  }

  key(event) {
    const { key, target } = event;
    if (key === " " && target !== this.button) this.toggle();
    else if (target !== this.slider && ["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) {
      this.seek({ ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: this.last }[key]);
    } else return;
    event.preventDefault();
  }

  table() {
    const { sites, steps, change } = this.data, { first, last, change: by } = change[this.gauge];
    const heads = [["#", 1], ["site"], ["operator"], ["block"], [`step ${steps[0]}`, 1], [`step ${steps[this.last]}`, 1], ["change", 1]];
    const rows = sites.site.map((site, i) => [
      numberCell(i + 1), ...textCells(site, sites.operator[i], sites.block[i]),
      ...[first[i], last[i], by[i]].map(numberCell)]);
    this.change.replaceChildren(tableOf(heads, rows, `${label(this.gauge)}, first and last`).figure);
  }
};
