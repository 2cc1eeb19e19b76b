// Leaky ResNets: a sweep against its designs, and one network along p.
Views.runs = class {
  constructor(element, data, charts) {
    this.data = data;
    this.charts = charts;
    this.many = data.runs.length > 1;
    this.chosen = data.first;
    this.axis = data.axes[0] ?? null;
    this.parts = {};
    element.replaceChildren(...(this.many ? this.sweep() : []), ...this.network());
    this.choose(this.chosen);
  }

  /** A place for a chart. */
  part(name) {
    this.parts[name] = make("div", { class: "chart", "data-part": name });
    return make("figure", {}, this.parts[name]);
  }

  side(...names) {
    return make("div", { class: "side" }, ...names.map((name) => this.part(name)));
  }

  sweep() {
    const { panels, axes, names, words } = this.data;
    const found = [make("p", { "data-words": "sweep" }, words)];
    if (this.axis) {
      const [first, ...rest] = panels.overview.map((panel) => panel.part);
      if (axes.length > 1) {
        const options = axes.map((name) => [name, names[name]]);
        found.push(make("div", { class: "controls" }, chooser("Against", options, this.axis, (name) => this.against(name))));
      }
      this.about = make("p", { class: "note", "data-about": true });
      found.push(this.about, this.part(first), this.side(...rest.slice(0, 2)), this.side(...rest.slice(2)));
    }
    found.push(make("h2", {}, "All networks"), this.networks());
    if (this.data.statements.length) found.push(make("h2", {}, "The paper's statements over the sweep"), this.overall());
    return found;
  }

  network() {
    const options = this.data.runs.map((run, i) => [String(i), run.name + this.rest(i)]);
    this.select = chooser("Network", options, String(this.chosen), (i) => this.choose(Number(i)));
    this.words = make("p", { "data-words": "run" });
    this.facts = make("div", { class: "details" });
    this.statements = make("div", { "data-part": "theory" });
    this.layers = make("div", { "data-part": "points" });
    this.planes = make("p", { class: "note" });
    const heading = (text) => make("h3", {}, text);
    const note = (text) => make("p", { class: "note" }, text);
    return [
      this.many ? make("h2", {}, "One network") : null,
      this.many ? make("div", { class: "controls" }, this.select) : null,
      this.words, this.facts,
      heading("Spectra along p"), note("The largest singular values. Those of W_p stand where their layer begins. Shaded: the bottleneck."),
      this.side("spectra", "weight_spectra"),
      heading("Energies and Hamiltonian"), this.side("energies", "hamiltonians"),
      heading("The bottleneck"), this.side("dimensions", "affinity"),
      heading("The path in a plane"), this.planes, this.side("path", "samples"),
      heading("Training"), this.side("losses", "crit"),
      heading("The paper's statements"), this.statements,
      heading("All points of the path"), this.layers,
    ].filter(Boolean);
  }

  /** What tells a network from others of the same L̃, k* and seed. */
  rest(i) {
    const { varied, table, names } = this.data;
    const usual = new Set(["effective_depth", "rank_of_task", "seed"]);
    return varied.filter((name) => !usual.has(name)).map((name) => {
      const value = table[name][i];
      return `, ${typeof value === "number" ? `${names[name]} = ${value}` : value ?? "–"}`;
    }).join("");
  }

  choose(i) {
    this.chosen = i;
    const run = this.data.runs[i];
    this.select.querySelector("select").value = String(i);
    if (this.many) for (const row of this.body.rows) current(row, Number(row.dataset.run) === i);
    this.words.textContent = run.words;
    this.facts.replaceChildren(make("strong", {}, run.name + this.rest(i)), make("dl", {}, ...run.facts.map(([name, value]) => (
      make("div", {}, make("dt", {}, name), make("dd", {}, number(value)))))));
    if (this.axis) this.against(this.axis);
    const { energies, bottleneck, training } = this.data.panels;
    for (const panel of [...energies, ...bottleneck, ...training]) this.lines(run, panel);
    this.spectra("spectra", run, run.spectra, run.points.p, "singular values of A_p", []);
    const depth = run.levels.depth === null ? [] : [{ value: run.levels.depth, name: "L̃" }];
    this.spectra("weight_spectra", run, run.weight_spectra, run.layers.p, "singular values of W_p", depth);
    this.plane(run);
    this.theory(run);
    this.points(run);
  }

  /** Networks that differ from the chosen one in one thing, and in their seeds. */
  kin(axis) {
    const { varied, table } = this.data;
    const same = varied.filter((name) => name !== axis && name !== "seed");
    return this.data.runs.map((_, i) => i).filter((i) => (
      !table.diverged[i] && table[axis][i] !== null && same.every((name) => table[name][i] === table[name][this.chosen])));
  }

  against(axis) {
    this.axis = axis;
    const { names, table, panels, varied, runs } = this.data, kin = this.kin(axis);
    const same = varied.filter((name) => name !== axis && name !== "seed").map((name) => `${names[name]}: ${table[name][this.chosen]}`);
    const others = same.length ? ` with ${same.join(", ")}` : "";
    this.about.textContent = `${kin.length} networks${others}. Lines join the medians over seeds, bars reach from the least to the `
      + "largest over p and seeds, hollow points are not critical. Choose a point to see its network.";
    for (const panel of panels.overview) {
      const rows = [];
      for (const [column, series] of Object.entries(panel.series)) {
        for (const i of kin) {
          const value = table[column][i];
          if (value === null || (panel.axis === "log" && value <= 0)) continue;
          rows.push({
            x: table[axis][i], series, value, run: i,
            low: table[`${column}_min`]?.[i] ?? value, high: table[`${column}_max`]?.[i] ?? value,
            critical: table.crit[i] === null || table.crit[i] <= runs[i].levels.critical,
            said: `${series} ${number(value)}, ${runs[i].name}`,
            known: told(series, ["network", runs[i].name], ["value", number(value)], ["crit", number(table.crit[i])]),
          });
        }
      }
      const places = [...new Set(kin.map((i) => table[axis][i]))].sort((a, b) => a - b);
      const task = (x) => (axis === "rank_of_task" ? x : runs[this.chosen].levels.rank);
      const marks = panel.mark === "rank" && runs[this.chosen].levels.rank !== null
        ? places.map((x, k) => ({ x, value: task(x), name: k === places.length - 1 ? "k*" : "" })) : [];
      this.draw(panel.part, this.charts[`against-${panel.axis}`], { x: names[axis], y: panel.y }, {
        rows, marks, critical: rows.filter((row) => row.critical), others: rows.filter((row) => !row.critical),
        chosen: rows.filter((row) => row.run === this.chosen),
      },
        { names: Object.values(panel.series), places }, (row) => row.run !== undefined && this.choose(row.run));
    }
  }

  lines(run, panel) {
    const table = run[panel.table], rows = [];
    for (const [column, series] of Object.entries(panel.series)) {
      table[column].forEach((value, i) => {
        if (value === null || (panel.axis === "log" && value <= 0)) return;
        const x = table[panel.x][i];
        rows.push({ x, series, value, said: `${series} ${number(value)} at ${panel.x} ${number(x)}`, known: told(series, [panel.x, number(x)], ["value", number(value)]) });
      });
    }
    const level = panel.mark === null ? null : run.levels[panel.mark];
    const marks = level === null ? [] : [{ value: level, name: panel.mark === "rank" ? `k* = ${level}` : "limit" }];
    const bands = panel.x === "p" ? this.bands(run) : [];
    this.draw(panel.part, this.charts[`lines-${panel.axis}`], { x: panel.x, y: panel.y }, { rows, marks, bands },
      { names: Object.values(panel.series) });
  }

  spectra(part, run, spectra, p, y, marks) {
    const rank = run.levels.rank, rows = [];
    spectra?.values.forEach((values, k) => {
      const leading = rank !== null && k < rank;
      values.forEach((value, i) => {
        if (value === null || value <= 0) return;
        const series = leading ? `first k* = ${rank}` : rank === null ? "singular values" : "others";
        rows.push({ x: p[i], number: k, value, series, leading: leading ? 1 : 0, said: `s${k + 1} ${number(value)} at p ${number(p[i])}`,
          known: told(`s${k + 1}`, ["p", number(p[i])], ["value", number(value)]) });
      });
    });
    this.draw(part, this.charts.spectra, { x: "p", y }, { rows, marks, bands: this.bands(run) }, { low: spectra?.low });
  }

  bands(run) {
    return run.bands.map(([begin, end]) => ({ begin, end }));
  }

  plane(run) {
    const { p, cost_of_identity: cost } = run.points, last = p.length - 1;
    const axes = ({ explained: [first, second] }) => (
      { x: `first principal component (${Math.round(100 * first)} %)`, y: `second (${Math.round(100 * second)} %)` });
    const path = p.map((place, i) => ({
      p: place, x: run.path.x[i], y: run.path.y[i], end: i === 0 ? "p = 0" : i === last ? "p = 1" : "",
      known: told(`p = ${number(place)}`, ["cost of identity", number(cost[i])]),
    }));
    const samples = run.samples.x.flatMap((line, sample) => line.map((x, i) => ({
      sample, p: p[i], x, y: run.samples.y[sample][i], known: told(`sample ${sample + 1}`, ["p", number(p[i])]),
    })));
    this.planes.textContent = "Left, each A_p as a whole is one point, and the plane is that of their first two principal components, as in "
      + `Figure 2c. Right, ${run.samples.x.length} samples, in the plane of the first two components of all samples at all p.`;
    this.draw("path", this.charts.path, axes(run.path), { rows: path });
    this.draw("samples", this.charts.samples, axes(run.samples), { rows: samples });
  }

  /** Draw a chart, or say that there is nothing to draw. */
  draw(part, spec, words, datasets, params = {}, onclick = null) {
    const place = this.parts[part];
    if (datasets.rows.length) {
      const layer = spec.layer.filter(({ data }) => !data || datasets[data.name].length); // Vega complains of empty ones
      const given = Object.entries(params).map(([name, value]) => ({ name, value }));
      draw(place, { ...filled({ ...spec, layer }, words), params: given }, datasets, onclick);
      return;
    }
    undraw(place, make("p", { class: "note" }, `${words.y}: nothing to show for this network.`));
    place.dataset.ready = "true";
  }

  theory(run) {
    if (!run.theory.length) {
      this.statements.replaceChildren(make("p", { class: "note" }, "Not checked on this network."));
      return;
    }
    const heads = [["holds"], ["statement"], ["left", 1], ["right", 1], ["slack", 1]];
    const rows = run.theory.map(([name, text, holds, ...sides]) => {
      const [claim, how, note] = this.data.texts[text];
      const statement = make("td", { class: "told" }, make("strong", {}, name), make("div", {}, claim),
        make("details", {}, make("summary", {}, "how it was decided"), make("div", {}, how), note ? make("div", {}, note) : null));
      return [make("td", { class: holds ? "yes" : "no" }, holds ? "yes" : "no"), statement, ...sides.map(numberCell)];
    });
    const held = run.theory.filter(([, , holds]) => holds).length;
    this.statements.replaceChildren(
      make("p", { class: "note" }, `${held} of ${run.theory.length} hold. The slack is the room that is left, negative where a statement fails.`),
      tableOf(heads, rows, "The paper's statements").figure);
  }

  /** How often each statement holds, and with which slack at least. */
  overall() {
    const heads = [["statement"], ["networks", 1], ["holds in", 1], ["least slack", 1]];
    const rows = this.data.statements.map(([name, text, count, held, least]) => [
      make("td", { class: "told" }, make("strong", {}, name), make("div", {}, this.data.texts[text][0])),
      numberCell(count), numberCell(held), numberCell(least)]);
    return tableOf(heads, rows, "The paper's statements over the sweep", "statements").figure;
  }

  points(run) {
    const columns = { p: "p", cost_of_identity: "COI", stable_rank: "stable rank", negative: "‖A₋‖/‖A‖", affinity: "affinity",
      momentum_norm: "‖B‖" };
    const layers = { hamiltonian: "−2H/L̃", hamiltonian_averaged: "averaged", kinetic: "kinetic", potential: "potential", crit: "crit" };
    const heads = [...Object.values(columns), ...Object.values(layers)].map((name) => [name, 1]);
    const rows = run.points.p.map((_, i) => [
      ...Object.keys(columns).map((name) => numberCell(run.points[name][i])),
      ...Object.keys(layers).map((name) => numberCell(run.layers[name][i] ?? null))]);
    this.layers.replaceChildren(
      make("p", { class: "note" }, "From −2H/L̃ on, of the layer that begins at p."), tableOf(heads, rows, "All points of the path").figure);
  }

  networks() {
    const { varied, names, table, runs } = this.data;
    const shown = { train_error: "train", test_error: "test", rank: "rank", hamiltonian: "−2H/L̃", cost_of_identity: "least COI",
      stable_rank: "stable rank", affinity: "affinity", crit: "crit" };
    const isNumber = (name) => table[name].every((value) => value === null || typeof value === "number");
    const designs = varied.length ? varied : ["seed"];
    const heads = [["#", 1], ...designs.map((name) => [names[name], isNumber(name)]), ...Object.values(shown).map((name) => [name, 1]), ["statements"]];
    const rows = runs.map((run, i) => [
      numberCell(i + 1),
      ...designs.map((name) => (isNumber(name) ? numberCell(table[name][i]) : make("td", {}, String(table[name][i] ?? "–")))),
      ...Object.keys(shown).map((name) => numberCell(table[name][i])),
      make("td", {}, run.theory.length ? `${run.theory.filter(([, , holds]) => holds).length} of ${run.theory.length}`
        : table.diverged[i] ? "diverged" : "–"),
    ]);
    const { figure, body } = tableOf(heads, rows, "All networks", "networks");
    choosable(body, "run", (i) => this.choose(i));
    this.body = body;
    return figure;
  }
};
