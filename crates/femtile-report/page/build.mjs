// Builds the script of the view and the licences of what is in it, into the folder that is given.

import { build } from 'esbuild';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const target = process.argv[2];
const { metafile } = await build({
  entryPoints: ['report.js'],
  outfile: join(target, 'report.js'),
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  metafile: true,
});

/** Folders of packages that are in the script. */
const packages = new Set();
for (const [name, { bytesInOutput }] of Object.entries(Object.values(metafile.outputs)[0].inputs)) {
  const found = name.match(/^.*node_modules\/(@[^/]+\/[^/]+|[^/]+)/);
  if (found && bytesInOutput > 0) packages.add(found[0]);
}

const licences = [...packages].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json')));
  const read = (pattern) => {
    const file = readdirSync(folder).find((entry) => pattern.test(entry));
    return file && readFileSync(join(folder, file), 'utf8');
  };
  // Some packages have their licence at the end of the file that introduces them.
  const text = read(/^licen[sc]e/i) ?? read(/^readme/i)?.match(/^#* *licen[sc]e[^]*$/im)?.[0];
  if (!text) throw new Error(`${name} has no text of a licence`);
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
});
writeFileSync(join(target, 'LICENSES.txt'), licences.join(`\n${'-'.repeat(72)}\n\n`));
