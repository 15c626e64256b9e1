/**
 * A NoCloud seed disc: an ISO 9660 image labelled `cidata` with these files in its root.
 *
 * The names come three times: level 1 names for the letter of the standard, Rock Ridge, which Linux reads,
 * and Joliet. All dates are fixed, so equal files make equal bytes.
 *
 * Source: ECMA-119; IEEE P1282 (Rock Ridge) and P1281 (SUSP); Microsoft's Joliet specification.
 */
export function cidata(files: Record<string, string>): Uint8Array {
  const laidOut = layOut(files)
  const image = Buffer.alloc(laidOut.sectors * sectorBytes)
  const put = (sector: number, bytes: Uint8Array) => image.set(bytes, sector * sectorBytes)

  for (const tree of [plain, joliet]) {
    put(tree.descriptor, volumeDescriptor(tree, laidOut.sectors))
    put(tree.pathTable, pathTable(tree.root, 'little'))
    put(tree.pathTable + 1, pathTable(tree.root, 'big'))
    put(tree.root, directory(tree, laidOut.files))
  }
  put(18, Buffer.from('\xffCD001\x01', 'latin1'))
  put(extensionSector, extensionReference)
  for (const { sector, bytes } of laidOut.files) put(sector, bytes)
  return image
}

const sectorBytes = 2048

/** The two trees of names; each has a volume descriptor, two path tables and one directory. */
type Tree = { kind: 'plain' | 'joliet'; descriptor: number; pathTable: number; root: number }
const plain: Tree = { kind: 'plain', descriptor: 16, pathTable: 19, root: 23 }
const joliet: Tree = { kind: 'joliet', descriptor: 17, pathTable: 21, root: 24 }
const extensionSector = 25
const firstFileSector = 26

type File = { name: string; bytes: Buffer; sector: number }

function layOut(texts: Record<string, string>): { files: File[]; sectors: number } {
  let sector = firstFileSector
  // The standard wants the records of a directory in the order of their names.
  const names = Object.keys(texts).sort()
  const files = names.map((name) => {
    const file = { name, bytes: Buffer.from(texts[name] ?? ''), sector }
    sector += Math.max(1, Math.ceil(file.bytes.length / sectorBytes))
    return file
  })
  return { files, sectors: sector }
}

function volumeDescriptor(tree: Tree, sectors: number): Buffer {
  const isJoliet = tree.kind === 'joliet'
  const text = (value: string, length: number) =>
    isJoliet ? utf16(value.padEnd(length / 2)) : Buffer.from(value.padEnd(length))
  const bytes = Buffer.alloc(sectorBytes)
  bytes.set([isJoliet ? 2 : 1, ...Buffer.from('CD001'), 1])
  bytes.set(text('LINUX', 32), 8)
  bytes.set(text('cidata', 32), 40)
  bytes.set(both32(sectors), 80)
  // UCS-2 level 3, by which Joliet is known.
  if (isJoliet) bytes.set(Buffer.from('%/E'), 88)
  bytes.set(both16(1), 120) // discs in the set
  bytes.set(both16(1), 124) // number of this one
  bytes.set(both16(sectorBytes), 128)
  bytes.set(both32(pathTable(tree.root, 'little').length), 132)
  bytes.writeUInt32LE(tree.pathTable, 140)
  bytes.writeUInt32BE(tree.pathTable + 1, 148)
  bytes.set(record('\0', tree.root, sectorBytes, { isDirectory: true }), 156)
  bytes.set(text('', 128 * 4), 190) // volume set, publisher, preparer, application
  // Three file identifiers of 37 bytes, an odd length, which UCS-2 leaves one byte of unused.
  for (const at of [702, 739, 776]) bytes.set(text('', isJoliet ? 36 : 37), at)
  for (const at of [813, 830]) bytes.set(Buffer.from(longDate), at) // created, modified
  for (const at of [847, 864]) bytes.set(Buffer.from('0'.repeat(16) + '\0'), at) // expires, effective: never
  bytes[881] = 1
  return bytes
}

/** One entry: the root. */
function pathTable(root: number, order: 'little' | 'big'): Buffer {
  const bytes = Buffer.alloc(10)
  bytes[0] = 1
  if (order === 'little') bytes.writeUInt32LE(root, 2)
  else bytes.writeUInt32BE(root, 2)
  if (order === 'little') bytes.writeUInt16LE(1, 6)
  else bytes.writeUInt16BE(1, 6)
  return bytes
}

/** Four short names: the directory never outgrows its one sector. */
function directory(tree: Tree, files: File[]): Buffer {
  const isPlain = tree.kind === 'plain'
  const itself = isPlain ? [sharingProtocol, posixAttributes(true), continuation] : []
  const parent = isPlain ? [posixAttributes(true)] : []
  return Buffer.concat([
    record('\0', tree.root, sectorBytes, { isDirectory: true, systemUse: itself }),
    record('\x01', tree.root, sectorBytes, { isDirectory: true, systemUse: parent }),
    ...files.map(({ name, sector, bytes }) =>
      isPlain
        ? record(levelOneName(name), sector, bytes.length, {
            systemUse: [posixAttributes(false), alternateName(name)],
          })
        : record(utf16(name), sector, bytes.length),
    ),
  ])
}

function record(
  name: string | Buffer,
  sector: number,
  length: number,
  { isDirectory = false, systemUse = [] }: { isDirectory?: boolean; systemUse?: Buffer[] } = {},
): Buffer {
  const identifier = Buffer.from(name)
  const head = Buffer.alloc(33 + identifier.length + (identifier.length % 2 === 0 ? 1 : 0))
  head.set(both32(sector), 2)
  head.set(both32(length), 10)
  head.set(shortDate, 18)
  head[25] = isDirectory ? 2 : 0
  head.set(both16(1), 28)
  head[32] = identifier.length
  head.set(identifier, 33)
  const bytes = Buffer.concat([head, ...systemUse])
  const even = bytes.length % 2 === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(1)])
  even[0] = even.length
  return even
}

/** `meta-data` → `META_DAT.;1`. The four names stay apart in their first eight characters. */
function levelOneName(name: string): string {
  return (
    name
      .toUpperCase()
      .replace(/[^A-Z0-9]/g, '_')
      .slice(0, 8) + '.;1'
  )
}

// Rock Ridge, as system use fields: two letters, length, version, content.

function field(letters: string, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([Buffer.from(letters), Buffer.from([4 + body.length, 1]), body])
}

const sharingProtocol = field('SP', Buffer.from([0xbe, 0xef, 0]))

/** Names the extension in use; too long for a directory record, hence a place of its own. */
const extensionReference = extension(
  'RRIP_1991A',
  'THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS',
  'PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE. SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR ' +
    'CONTACT INFORMATION.',
)

const continuation = field('CE', both32(extensionSector), both32(0), both32(extensionReference.length))

function extension(id: string, description: string, source: string): Buffer {
  const lengths = Buffer.from([id.length, description.length, source.length, 1])
  return field('ER', lengths, Buffer.from(id + description + source))
}

/** Mode, links, owner, group, as stat(2) gives them: root's, readable by root alone. */
function posixAttributes(isDirectory: boolean): Buffer {
  const mode = isDirectory ? 0o040_700 : 0o100_400
  return field('PX', both32(mode), both32(isDirectory ? 2 : 1), both32(0), both32(0))
}

function alternateName(name: string): Buffer {
  return field('NM', Buffer.from([0]), Buffer.from(name))
}

/** Every number stands on the disc in both byte orders. */
function both16(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16LE(value, 0)
  bytes.writeUInt16BE(value, 2)
  return bytes
}

function both32(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(value, 0)
  bytes.writeUInt32BE(value, 4)
  return bytes
}

function utf16(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16()
}

/** The first moment of 2020, UTC. */
const longDate = '2020010100000000\0'
const shortDate = [120, 1, 1, 0, 0, 0, 0]
