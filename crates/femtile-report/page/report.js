// The controls of the view of a report.

import { coordinates, values, whole } from './numbers';
import { Scene } from './scene';

const element = (id) => document.getElementById(id);

/** Reads the mesh of a part of the page. */
async function mesh(part, bounds) {
  const [points, triangles] = await Promise.all([coordinates(part.points, bounds), whole(part.triangles, 4)]);
  return { points, triangles, corners: part.corners };
}

/** Reads each part of the page at its first use. */
class Parts {
  constructor(data) {
    this.data = data;
    this.known = new Map();
  }

  once(key, read) {
    if (!this.known.has(key)) this.known.set(key, read());
    return this.known.get(key);
  }

  part(name) {
    return name === 'surface' ? this.data.surface : this.data.slices[name];
  }

  mesh(name) {
    return this.once(`mesh ${name}`, () => mesh(this.part(name), this.data.bounds));
  }

  values(name, frame) {
    return this.once(`values ${name} ${frame}`, () => values(this.part(name).values[frame], this.data.range));
  }
}

/** A number with few digits. */
function short(x) {
  const size = Math.abs(x);
  if (size === 0 || (size >= 1e-3 && size < 1e5)) return String(Number(x.toFixed(4)));
  return x.toExponential(2);
}

class Viewer {
  constructor(data) {
    this.data = data;
    this.parts = new Parts(data);
    this.scene = new Scene(element('view'), data);
    this.frame = Math.max(data.times.length - 1, 0);
    this.slice = null;
  }

  async start() {
    this.fillControls();
    this.scene.body.show(await this.parts.mesh('surface'));
    this.applyTheme();
    this.applyColours();
    await this.applyFrame();
    this.scene.resize();
    this.scene.reset();
    this.scene.onTurn((directions) => this.drawAxes(directions));
    this.scene.render();
    this.listen();
  }

  fillControls() {
    const { colours, times, slices, dimension } = this.data;
    colours.forEach(({ name }) => element('colours').add(new Option(name)));
    element('clip').add(new Option('off', ''));
    ['x', 'y', 'z'].slice(0, Math.max(dimension, 2)).forEach((name, axis) => {
      if (dimension < 3 || slices.some((slice) => slice.axis === axis)) element('clip').add(new Option(name, axis));
    });
    element('time').max = this.frame;
    element('time').value = this.frame;
    element('time-control').hidden = times.length < 2;
  }

  listen() {
    const on = (id, event, act) => element(id).addEventListener(event, () => act.call(this));
    on('colours', 'change', this.applyColours);
    on('edges', 'change', function edges() {
      this.scene.setEdges(element('edges').checked);
      this.scene.render();
    });
    on('isolines', 'input', this.applyLines);
    on('clip', 'change', this.chooseAxis);
    on('position', 'input', this.applyClip);
    on('side', 'change', this.applyClip);
    on('time', 'input', this.applyFrame);
    on('reset', 'click', function reset() {
      this.scene.reset();
      this.scene.render();
    });
    element('view').addEventListener('keydown', (event) => this.press(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.applyTheme();
      this.scene.render();
    });
  }

  press(event) {
    const acts = {
      ArrowLeft: () => this.scene.turn(10, 0),
      ArrowRight: () => this.scene.turn(-10, 0),
      ArrowUp: () => this.scene.turn(0, -10),
      ArrowDown: () => this.scene.turn(0, 10),
      '+': () => this.scene.zoom(1.1),
      '-': () => this.scene.zoom(1 / 1.1),
      r: () => element('reset').click(),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  applyTheme() {
    const colour = getComputedStyle(element('view')).backgroundColor.match(/\d+/g);
    this.scene.setBackground(colour.slice(0, 3).map((part) => part / 255));
  }

  applyColours() {
    const { colours, range } = this.data;
    const map = colours[element('colours').selectedIndex];
    this.scene.setColours(map.colours, range);
    const stops = map.colours.map((colour) => `rgb(${colour.join(' ')})`).join(', ');
    element('bar').style.background = `linear-gradient(to right, ${stops})`;
    const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => short(range[0] + share * (range[1] - range[0])));
    element('marks').replaceChildren(...marks.map((mark) => Object.assign(document.createElement('span'), { textContent: mark })));
    this.scene.render();
  }

  async applyFrame() {
    this.frame = Number(element('time').value);
    const time = this.data.times[this.frame];
    element('moment').textContent = time === undefined ? '' : `t = ${short(time)}`;
    this.scene.body.colour(await this.parts.values('surface', this.frame));
    await this.showLid();
    this.applyLines();
  }

  levels() {
    const n = Number(element('isolines').value);
    const [low, high] = this.data.range;
    return Array.from({ length: n }, (_, i) => low + ((high - low) * (i + 0.5)) / n);
  }

  applyLines() {
    this.scene.body.drawLines(this.levels());
    if (this.slice !== null) this.scene.lid.drawLines(this.levels());
    this.scene.render();
  }

  /** Positions of the clipping plane: those of the sections, or equal steps in two dimensions. */
  positions(axis) {
    const { slices, bounds, dimension } = this.data;
    if (dimension < 3) {
      const step = (i) => bounds[0][axis] + ((bounds[1][axis] - bounds[0][axis]) * i) / 100;
      return Array.from({ length: 101 }, (_, i) => ({ position: step(i), slice: null }));
    }
    const all = slices.map(({ position, axis: of }, slice) => ({ position, of, slice }));
    return all.filter(({ of }) => of === axis);
  }

  async chooseAxis() {
    const axis = element('clip').value;
    element('clip-control').hidden = axis === '';
    if (axis !== '') {
      const n = this.positions(Number(axis)).length;
      element('position').max = n - 1;
      element('position').value = Math.floor(n / 2);
      // What is nearer to the eye is left out at first.
      element('side').checked = axis === '1';
    }
    await this.applyClip();
  }

  async applyClip() {
    const axis = element('clip').value;
    const isClipped = axis !== '';
    this.slice = null;
    if (isClipped) {
      const { position, slice } = this.positions(Number(axis))[Number(element('position').value)];
      this.slice = slice;
      this.scene.setPlane(Number(axis), position, element('side').checked ? 1 : -1);
      element('place').textContent = `${'xyz'[axis]} = ${short(position)}`;
    }
    this.scene.body.clip(isClipped);
    await this.showLid();
    this.applyLines();
  }

  async showLid() {
    const { lid } = this.scene;
    const { slice } = this;
    lid.setVisible(slice !== null);
    if (slice === null) return;
    const [shape, colours] = await Promise.all([this.parts.mesh(slice), this.parts.values(slice, this.frame)]);
    // The plane may have been moved on.
    if (slice !== this.slice) return;
    lid.show(shape);
    lid.colour(colours);
  }

  drawAxes(directions) {
    directions.forEach(([right, up], axis) => {
      const [x, y] = [30 + 22 * right, 30 - 22 * up];
      const line = element(`axis-${'xyz'[axis]}`);
      line.setAttribute('x2', x);
      line.setAttribute('y2', y);
      const name = element(`name-${'xyz'[axis]}`);
      name.setAttribute('x', 30 + 27 * right);
      name.setAttribute('y', 34 - 27 * up);
    });
  }
}

async function start() {
  const data = JSON.parse(element('data').textContent);
  try {
    await new Viewer(data).start();
    document.body.classList.add('has-view');
    document.body.dataset.view = 'ready';
  } catch (error) {
    // The picture stays in place of the view.
    document.body.dataset.view = `failed: ${error}`;
    element('trouble').textContent = `The view could not be opened (${error.message}); the picture shows the end of the run.`;
  }
}

if (element('data')) start();
