// The view: a surface, the section at the clipping plane and isolines on both.

import '@kitware/vtk.js/Rendering/Profiles/Geometry';
import vtkActor from '@kitware/vtk.js/Rendering/Core/Actor';
import vtkColorTransferFunction from '@kitware/vtk.js/Rendering/Core/ColorTransferFunction';
import vtkDataArray from '@kitware/vtk.js/Common/Core/DataArray';
import vtkGenericRenderWindow from '@kitware/vtk.js/Rendering/Misc/GenericRenderWindow';
import vtkMapper from '@kitware/vtk.js/Rendering/Core/Mapper';
import vtkPlane from '@kitware/vtk.js/Common/DataModel/Plane';
import vtkPolyData from '@kitware/vtk.js/Common/DataModel/PolyData';

import { isolines } from './isolines';

const INK = [0.1, 0.1, 0.1];

/** Returns cells in the form of VTK: before the points of each their number. */
function cells(nodes, corners) {
  const all = new Uint32Array((nodes.length / corners) * (corners + 1));
  for (let from = 0, to = 0; from < nodes.length; to += 1) {
    all[to] = corners;
    for (const end = to + corners; to < end; from += 1) all[(to += 1)] = nodes[from];
  }
  return all;
}

/** Returns the quadrilaterals that pairs of triangles are halves of. */
function quadrilaterals(triangles) {
  const nodes = new Uint32Array((triangles.length / 6) * 4);
  for (let i = 0; 6 * i < triangles.length; i += 1) {
    for (let corner = 0; corner < 3; corner += 1) nodes[4 * i + corner] = triangles[6 * i + corner];
    nodes[4 * i + 3] = triangles[6 * i + 5];
  }
  return nodes;
}

/** A surface with its isolines. */
class Part {
  constructor(renderer, colours, plane) {
    [this.surface, this.lines] = [0, 1].map(() => {
      const data = vtkPolyData.newInstance();
      const mapper = vtkMapper.newInstance();
      const actor = vtkActor.newInstance();
      mapper.setInputData(data);
      actor.setMapper(mapper);
      renderer.addActor(actor);
      return { data, mapper, actor };
    });
    this.surface.mapper.set({ lookupTable: colours, useLookupTableScalarRange: true, interpolateScalarsBeforeMapping: true });
    // Lines on a surface are nearer than it.
    this.surface.mapper.setResolveCoincidentTopologyToPolygonOffset();
    this.surface.mapper.setRelativeCoincidentTopologyPolygonOffsetParameters(2, 2);
    this.lines.mapper.setScalarVisibility(false);
    this.lines.actor.getProperty().set({ color: INK, lighting: false, lineWidth: 1.5 });
    this.surface.actor.getProperty().set({ ambient: 0.35, diffuse: 0.7, edgeColor: INK });
    this.plane = plane;
  }

  show({ points, triangles, corners = 3 }) {
    this.mesh = { points, triangles };
    this.surface.data.getPoints().setData(points, 3);
    this.surface.data.getPolys().setData(cells(corners === 4 ? quadrilaterals(triangles) : triangles, corners));
    this.surface.data.modified();
  }

  colour(values) {
    this.mesh.values = values;
    const scalars = vtkDataArray.newInstance({ name: 'u', values, numberOfComponents: 1 });
    this.surface.data.getPointData().setScalars(scalars);
    this.surface.data.modified();
  }

  drawLines(levels) {
    const { points, triangles, values } = this.mesh;
    const ends = levels.length ? isolines(points, triangles, values, levels) : new Float32Array();
    this.lines.data.getPoints().setData(ends, 3);
    const pairs = Uint32Array.from({ length: ends.length / 3 }, (_, i) => i);
    this.lines.data.getLines().setData(cells(pairs, 2));
    this.lines.data.modified();
    this.lines.actor.setVisibility(this.isShown && ends.length > 0);
  }

  setVisible(isShown) {
    this.isShown = isShown;
    this.surface.actor.setVisibility(isShown);
    this.lines.actor.setVisibility(isShown);
  }

  clip(isClipped) {
    [this.surface, this.lines].forEach(({ mapper }) => {
      mapper.removeAllClippingPlanes();
      if (isClipped) mapper.addClippingPlane(this.plane);
    });
  }
}

/** The scene in an element of the page. */
export class Scene {
  constructor(element, { dimension, bounds }) {
    this.window = vtkGenericRenderWindow.newInstance({ listenWindowResize: false });
    this.window.setContainer(element);
    this.renderer = this.window.getRenderer();
    this.colours = vtkColorTransferFunction.newInstance();
    this.colours.setNanColor(0.7, 0.7, 0.7, 1);
    this.plane = vtkPlane.newInstance();
    this.body = new Part(this.renderer, this.colours, this.plane);
    this.body.setVisible(true);
    this.lid = new Part(this.renderer, this.colours, this.plane);
    this.lid.setVisible(false);
    this.dimension = dimension;
    this.bounds = bounds;
    new ResizeObserver(() => this.resize()).observe(element);
  }

  resize() {
    this.window.resize();
    this.render();
  }

  render() {
    this.window.getRenderWindow().render();
  }

  setBackground(colour) {
    this.renderer.setBackground(...colour);
  }

  /** Sets the colours at equal distances of a range. */
  setColours(colours, [low, high]) {
    this.colours.removeAllPoints();
    colours.forEach((colour, i) => {
      const value = low + ((high - low) * i) / (colours.length - 1);
      this.colours.addRGBPoint(value, ...colour.map((part) => part / 255));
    });
    this.colours.setMappingRange(low, high);
    this.colours.updateRange();
  }

  setEdges(isShown) {
    this.body.surface.actor.getProperty().setEdgeVisibility(isShown);
  }

  /** Clips at a coordinate of an axis; `side` is 1 to keep what lies above. */
  setPlane(axis, position, side) {
    const origin = [0, 0, 0];
    const normal = [0, 0, 0];
    origin[axis] = position;
    normal[axis] = side;
    this.plane.set({ origin, normal });
  }

  /** Looks at the whole from the front, the right and above, or from above. */
  reset() {
    const camera = this.renderer.getActiveCamera();
    const isFlat = this.dimension < 3;
    camera.setParallelProjection(isFlat);
    camera.setFocalPoint(0, 0, 0);
    camera.setPosition(...(isFlat ? [0, 0, 1] : [0.5, -0.75, 0.42]));
    camera.setViewUp(...(isFlat ? [0, 1, 0] : [0, 0, 1]));
    const [low, high] = this.bounds;
    this.renderer.resetCamera([low[0], high[0], low[1], high[1], low[2], high[2]]);
    const [width, height] = this.window.getApiSpecificRenderWindow().getSize();
    const narrow = Math.max(width, 1) / Math.max(height, 1);
    if (isFlat) {
      const [x, y] = [high[0] - low[0], high[1] - low[1]];
      camera.setParallelScale(0.54 * Math.max(y, x / narrow));
    } else {
      camera.zoom(0.95 / this.share(narrow));
    }
    this.renderer.resetCameraClippingRange();
  }

  /** Returns the share of the view, in height or width, that the bounds take. */
  share(narrow) {
    const camera = this.renderer.getActiveCamera();
    const matrix = camera.getViewMatrix();
    const tangent = Math.tan((camera.getViewAngle() * Math.PI) / 360);
    const shares = [0, 1, 2, 3, 4, 5, 6, 7].map((corner) => {
      const point = [0, 1, 2].map((axis) => this.bounds[(corner >> axis) & 1][axis]);
      const along = (row) => [0, 1, 2].reduce((sum, axis) => sum + matrix[4 * row + axis] * point[axis], matrix[4 * row + 3]);
      const [x, y, z] = [along(0), along(1), -along(2)];
      return Math.max(Math.abs(y), Math.abs(x) / narrow) / (z * tangent);
    });
    return Math.max(...shares);
  }

  /** Turns by degrees to the right and upwards. */
  turn(right, up) {
    const camera = this.renderer.getActiveCamera();
    camera.azimuth(right);
    camera.elevation(up);
    camera.orthogonalizeViewUp();
    this.renderer.resetCameraClippingRange();
    this.render();
  }

  zoom(factor) {
    this.renderer.getActiveCamera().zoom(factor);
    this.renderer.resetCameraClippingRange();
    this.render();
  }

  /** Calls a function with the directions of x, y and z on the screen, now and after each turn. */
  onTurn(tell) {
    const camera = this.renderer.getActiveCamera();
    const directions = () => {
      const matrix = camera.getViewMatrix();
      tell([0, 1, 2].map((axis) => [matrix[axis], matrix[4 + axis]]));
    };
    camera.onModified(directions);
    directions();
  }
}
