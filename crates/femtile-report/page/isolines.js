/** Returns the ends of the pieces of isolines in triangles, six coordinates a piece. */
export function isolines(points, triangles, values, levels) {
  const ends = [];
  const crossing = (a, b, level) => {
    const share = (level - values[a]) / (values[b] - values[a]);
    for (let i = 0; i < 3; i += 1) ends.push(points[3 * a + i] + share * (points[3 * b + i] - points[3 * a + i]));
  };
  for (let t = 0; t < triangles.length; t += 3) {
    const [a, b, c] = [triangles[t], triangles[t + 1], triangles[t + 2]];
    for (const level of levels) {
      const [p, q, r] = [values[a] < level, values[b] < level, values[c] < level];
      if (p === q && q === r) continue;
      if (p !== q) crossing(a, b, level);
      if (q !== r) crossing(b, c, level);
      if (r !== p) crossing(c, a, level);
    }
  }
  return Float32Array.from(ends);
}
