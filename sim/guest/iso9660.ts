/** An optical disc as a guest's kernel would mount it: its label and the files of its root directory. */
export type Disc = { label: string; files: Map<string, Uint8Array> }

const sectorBytes = 2048
const firstDescriptor = 16
/** An image that lies about its sizes is given up on, not followed. */
const limits = { descriptors: 32, directoryBytes: 1024 * 1024, files: 2000, continuations: 32 }

type Extent = { start: number; bytes: number }
type Volume = { label: string; root: Extent; isJoliet: boolean }
type Entry = Extent & { name: string; rockRidgeName?: string; isDirectory: boolean }

/**
 * Reads an ISO 9660 image. Names are Rock Ridge's when the image has them, else Joliet's, else the plain ones in lower case
 * without a version, as Linux shows them. `undefined`: no such image, or one that cannot be read.
 * Source: ECMA-119; IEEE P1282 (Rock Ridge); the mount options of isofs.
 */
export function readDisc(image: Uint8Array): Disc | undefined {
  const bytes = Buffer.from(image.buffer, image.byteOffset, image.byteLength)
  const volumes = readDescriptors(bytes)
  const primary = volumes.find(({ isJoliet }) => !isJoliet)
  if (!primary) return undefined
  const entries = readDirectory(bytes, primary.root)
  const joliet = volumes.find(({ isJoliet }) => isJoliet)
  const hasRockRidge = entries?.some(({ rockRidgeName }) => rockRidgeName !== undefined)
  const chosen = hasRockRidge || !joliet ? entries : readDirectory(bytes, joliet.root, 'joliet')
  if (!chosen) return undefined

  const files = new Map<string, Uint8Array>()
  for (const entry of chosen) {
    const content = entry.isDirectory ? undefined : slice(bytes, entry)
    if (content) files.set(entry.rockRidgeName ?? entry.name, content)
  }
  return { label: primary.label, files }
}

function readDescriptors(bytes: Buffer): Volume[] {
  const volumes: Volume[] = []
  for (let i = 0; i < limits.descriptors; i += 1) {
    const sector = slice(bytes, { start: (firstDescriptor + i) * sectorBytes, bytes: sectorBytes })
    if (sector?.toString('latin1', 1, 6) !== 'CD001') break
    const kind = sector[0]
    if (kind === 255) break
    const isJoliet = kind === 2 && /^%\/[@CE]/.test(sector.toString('latin1', 88, 91))
    if (kind !== 1 && !isJoliet) continue
    const label = (isJoliet ? utf16(sector.subarray(40, 72)) : sector.toString('latin1', 40, 72)).trimEnd()
    const root = { start: sector.readUInt32LE(156 + 2) * sectorBytes, bytes: sector.readUInt32LE(156 + 10) }
    volumes.push({ label, root, isJoliet })
  }
  return volumes
}

/** The entries of one directory, or `undefined` when it lies outside the image. */
function readDirectory(
  bytes: Buffer,
  extent: Extent,
  names: 'plain' | 'joliet' = 'plain',
): Entry[] | undefined {
  if (extent.bytes > limits.directoryBytes) return undefined
  const directory = slice(bytes, extent)
  if (!directory) return undefined
  const entries: Entry[] = []
  let at = 0
  while (at < directory.length && entries.length < limits.files) {
    const length = directory[at] ?? 0
    // A record never crosses a sector: zero means the next one.
    if (length === 0) {
      at = (Math.floor(at / sectorBytes) + 1) * sectorBytes
      continue
    }
    const entry = readEntry(bytes, directory.subarray(at, at + length), names)
    if (entry) entries.push(entry)
    at += length
  }
  return entries
}

const recordHeadBytes = 33

function readEntry(bytes: Buffer, record: Buffer, names: 'plain' | 'joliet'): Entry | undefined {
  const nameBytes = record[32] ?? 0
  if (record.length < recordHeadBytes + nameBytes || nameBytes === 0) return undefined
  const rawName = record.subarray(recordHeadBytes, recordHeadBytes + nameBytes)
  const isSelfOrParent = nameBytes === 1 && (rawName[0] === 0 || rawName[0] === 1)
  if (isSelfOrParent) return undefined
  const isDirectory = ((record[25] ?? 0) & 2) !== 0
  const place = { start: record.readUInt32LE(2) * sectorBytes, bytes: record.readUInt32LE(10), isDirectory }
  if (names === 'joliet') return { ...place, name: withoutVersion(utf16(rawName)) }
  // The area after the name begins at an even offset.
  const system = record.subarray(recordHeadBytes + nameBytes + ((nameBytes + 1) % 2))
  const rockRidgeName = readRockRidgeName(bytes, system)
  const name = withoutVersion(rawName.toString('latin1')).toLowerCase()
  return { ...place, name, ...(rockRidgeName !== undefined && { rockRidgeName }) }
}

/** Collects the NM entries of a system use area, wherever its continuations lie. */
function readRockRidgeName(bytes: Buffer, area: Buffer): string | undefined {
  let name: string | undefined
  let current: Buffer | undefined = area
  for (let i = 0; current && i < limits.continuations; i += 1) {
    let next: Buffer | undefined
    for (let at = 0; at + 4 <= current.length; ) {
      const signature = current.toString('latin1', at, at + 2)
      const length = current[at + 2] ?? 0
      if (length < 4 || at + length > current.length) break
      // Byte 4 of NM: 2 and 4 mark the directory itself and its parent.
      const isOwnName = signature === 'NM' && length >= 5 && ((current[at + 4] ?? 0) & 6) === 0
      if (isOwnName) name = (name ?? '') + current.toString('utf8', at + 5, at + length)
      if (signature === 'CE' && length >= 28) {
        const start = current.readUInt32LE(at + 4) * sectorBytes + current.readUInt32LE(at + 12)
        next = slice(bytes, { start, bytes: current.readUInt32LE(at + 20) })
      }
      if (signature === 'ST') break
      at += length
    }
    current = next
  }
  return name
}

function slice(bytes: Buffer, { start, bytes: length }: Extent): Buffer | undefined {
  return start + length > bytes.length ? undefined : bytes.subarray(start, start + length)
}

function utf16(bigEndian: Buffer): string {
  const even = bigEndian.subarray(0, bigEndian.length & ~1)
  return Buffer.from(even).swap16().toString('utf16le')
}

function withoutVersion(name: string): string {
  return name.replace(/;\d+$/, '').replace(/\.$/, '')
}
