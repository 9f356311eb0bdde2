// Numbers from the page: differences, their bytes in planes, compressed, as text.

/** Returns the bytes of a text in base64. */
function bytesOf(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < characters.length; i += 1) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** Returns the bytes before compression. */
async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Returns whole numbers whose differences take a number of bytes. */
export async function whole(text, width) {
  const planes = await inflated(bytesOf(text));
  const n = planes.length / width;
  const numbers = new Uint32Array(n);
  for (let i = 0, last = 0; i < n; i += 1) {
    let folded = 0;
    for (let plane = width - 1; plane >= 0; plane -= 1) folded = (folded << 8) | planes[plane * n + i];
    // Differences are folded: 0, -1, 1, -2, … are 0, 1, 2, 3, …
    last += (folded >>> 1) ^ -(folded & 1);
    numbers[i] = last;
  }
  return numbers;
}

/** Returns coordinates, x, y and z of each point, from their places between the ends of the bounds. */
export async function coordinates(text, [low, high]) {
  const places = await whole(text, 3);
  const n = places.length / 3;
  const points = new Float32Array(places.length);
  for (let axis = 0; axis < 3; axis += 1) {
    const step = (high[axis] - low[axis]) / 65535;
    for (let i = 0; i < n; i += 1) points[3 * i + axis] = low[axis] + step * places[axis * n + i];
  }
  return points;
}

/** Returns values from their places in a range; the last place is that of no value. */
export async function values(text, [low, high]) {
  const places = await whole(text, 3);
  const step = (high - low) / 65534;
  const found = new Float32Array(places.length);
  for (let i = 0; i < places.length; i += 1) found[i] = places[i] === 65535 ? NaN : low + step * places[i];
  return found;
}
