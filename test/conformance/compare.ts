import type { RecordedAnswer } from './recording.ts'

export type OurAnswer = { status: number; reason: string; body: string } | { connection: string }

/** What is called differently in each run: recorded name → ours. */
export type Names = Map<string, string>

/** The differences between a recorded answer and ours, as sentences. Empty when they agree. */
export function differences(recorded: RecordedAnswer, ours: OurAnswer, names: Names): string[] {
  if (recorded.status === null || recorded.status === undefined)
    return 'connection' in ours ? [] : [`answered ${ours.status}, recorded is a dropped connection`]
  if ('connection' in ours) return [`connection failed (${ours.connection}), recorded is ${recorded.status}`]
  const found: string[] = []
  if (ours.status !== recorded.status)
    found.push(`status ${ours.status}, recorded ${recorded.status}: ${ours.body.slice(0, 300)}`)
  const reason = plain(translate(recorded.reason ?? '', names))
  if (plain(ours.reason) !== reason) found.push(`reason ${ours.reason}, recorded ${reason}`)
  if (found.length > 0) return found
  compareBody(recorded.body, ours.body, names, found)
  return found
}

function compareBody(recorded: unknown, ours: string, names: Names, found: string[]): void {
  if (recorded === '...' || recorded === '<long>') return
  const isJson = ours.startsWith('{')
  if (isJson && isWhole(recorded)) compareValue('body', recorded, JSON.parse(ours), names, found)
  else if (isJson) compareReduced(recorded, JSON.parse(ours).data, names, found)
  else if (plain(String(recorded ?? '')).trim() !== plain(ours).trim())
    found.push(`body ${ours}, recorded ${String(recorded)}`)
}

const isWhole = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && !Array.isArray(body) && 'data' in body

/** Some long bodies were recorded by the part that matters. */
function compareReduced(recorded: unknown, ours: unknown, names: Names, found: string[]): void {
  if (typeof recorded === 'string' && recorded.startsWith('<as ')) return
  if (Array.isArray(recorded) && recorded.every((item) => typeof item === 'number')) {
    const members = fieldOf(ours, 'members')
    const vmids = Array.isArray(members) ? members.map((member) => fieldOf(member, 'vmid')) : []
    compareValue('members', recorded, vmids.sort(), names, found)
    return
  }
  if (Array.isArray(recorded) && Array.isArray(ours)) {
    compareReducedList(recorded, ours, names, found)
    return
  }
  if (typeof recorded === 'object' && recorded !== null && !Array.isArray(recorded)) {
    const kept = Object.fromEntries(Object.keys(recorded).map((key) => [key, fieldOf(ours, key)]))
    compareValue('data', recorded, kept, names, found)
    return
  }
  const values: unknown[] = typeof ours === 'object' && ours !== null ? Object.values(ours) : [ours]
  const wanted = recorded === null ? undefined : recorded
  if (wanted === undefined ? typeof ours === 'object' : values.includes(wanted)) return
  found.push(
    `nothing in data is ${JSON.stringify(recorded)?.slice(0, 200)}: ${JSON.stringify(ours)?.slice(0, 300)}`,
  )
}

/** Lists were cut to their last lines, or each element to a few of its values. */
function compareReducedList(recorded: unknown[], ours: unknown[], names: Names, found: string[]): void {
  if (recorded.some(isLogLine)) {
    const kept = recorded.filter((item) => !isProgress(item))
    const mine = ours.filter((item) => !isProgress(item))
    compareList('data', kept, kept.length > 0 ? mine.slice(-kept.length) : [], names, found)
    return
  }
  if (!recorded.some(Array.isArray)) {
    const keys = isObject(recorded[0]) ? Object.keys(recorded[0]) : []
    const cut = (item: unknown) => Object.fromEntries(keys.map((key) => [key, fieldOf(item, key) ?? null]))
    const isCut = recorded.every((item) => isObject(item) && 'lock' in item && !('id' in item))
    const isTaskList = isObject(recorded[0]) && 'upid' in recorded[0]
    const top = isTaskList ? ours.slice(0, recorded.length) : ours
    compareList('data', recorded, isCut ? top.map(cut) : top, names, found)
    return
  }
  if (recorded.length !== ours.length)
    found.push(`data has ${ours.length} elements, recorded ${recorded.length}`)
  for (const tuple of recorded) {
    if (!Array.isArray(tuple)) continue
    const match = ours.find(
      (item) =>
        isObject(item) && tuple.every((value) => value === null || Object.values(item).includes(value)),
    )
    if (!match) found.push(`no element of data has ${JSON.stringify(tuple)}`)
  }
}

const isLogLine = (item: unknown): boolean => isObject(item) && 't' in item && 'n' in item

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined

/** Facts of the moment or of the machine: compared by their type. */
const ofTheMoment =
  /^(?:upid|pid|pstart|starttime|endtime|uptime|ctime|cpu|mem|memhost|disk|netin|netout|diskread|diskwrite|used|avail|total|free|available|used_fraction|loadavg|wait|idle|flags|mhz|digest|vmgenid|fingerprint|maxdisk\?|pressure\w+|swap|rootfs|ksm|kversion|current-kernel|creation-qemu)$/

function compareValue(path: string, recorded: unknown, ours: unknown, names: Names, found: string[]): void {
  const key = path.split('.').at(-1) ?? ''
  if (ofTheMoment.test(key)) {
    if (kindOf(recorded) !== kindOf(ours))
      found.push(`${path} is ${kindOf(ours)}, recorded ${kindOf(recorded)}`)
    return
  }
  if (Array.isArray(recorded) && Array.isArray(ours)) {
    compareList(path, recorded, ours, names, found)
    return
  }
  if (isObject(recorded) && isObject(ours)) {
    for (const name of new Set([...Object.keys(recorded), ...Object.keys(ours)])) {
      // Perl has this one there or not by what was done with the record before.
      if (name === 'saved' && !(name in ours && name in recorded)) continue
      if (!(name in ours))
        found.push(`${path}.${name} is missing (recorded ${JSON.stringify(recorded[name])?.slice(0, 120)})`)
      else if (!(name in recorded))
        found.push(`${path}.${name} is too much (${JSON.stringify(ours[name])?.slice(0, 120)})`)
      else compareValue(`${path}.${name}`, recorded[name], ours[name], names, found)
    }
    return
  }
  // Perl: the same number is a text or not by what was done with it before.
  if (key === 'saved' && String(recorded) === String(ours)) return
  const left = typeof recorded === 'string' ? normal(key, translate(recorded, names)) : recorded
  const right = typeof ours === 'string' ? normal(key, ours) : ours
  if (left !== right)
    found.push(
      `${path} is ${JSON.stringify(right)?.slice(0, 200)}, recorded ${JSON.stringify(left)?.slice(0, 200)}`,
    )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const kindOf = (value: unknown): string =>
  Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value

/** PVE lists what it keeps in hashes in no order: elements are matched by what identifies them. */
function compareList(
  path: string,
  recorded: unknown[],
  ours: unknown[],
  names: Names,
  found: string[],
): void {
  const kept = path.endsWith('data') ? recorded.filter((item) => !isProgress(item)) : recorded
  const mine = path.endsWith('data') ? ours.filter((item) => !isProgress(item)) : ours
  if (kept.length !== mine.length) {
    found.push(
      `${path} has ${mine.length} elements, recorded ${kept.length}: ${JSON.stringify(mine).slice(0, 400)} / ${JSON.stringify(kept).slice(0, 400)}`,
    )
    return
  }
  const ordered = (list: unknown[]) =>
    list.every((item) => identity(item) !== undefined) ? [...list].sort(byIdentity(names)) : list
  const [left, right] = [ordered(kept), ordered(mine)]
  for (const [index, item] of left.entries())
    compareValue(`${path}.${index}`, withoutNumber(item), withoutNumber(right[index]), names, found)
}

/** How often qemu-img tells how far it is depends on the machine. */
const isProgress = (item: unknown): boolean => isObject(item) && /^transferred /.test(String(item.t ?? ''))

function withoutNumber(item: unknown): unknown {
  return isObject(item) && isLogLine(item) ? item.t : item
}

function identity(item: unknown): string | undefined {
  if (!isObject(item)) return undefined
  const name = item.volid ?? item.id ?? item.storage ?? item.node ?? item.poolid ?? item.key ?? item.iface
  return name === undefined
    ? item.vmid === undefined
      ? undefined
      : String(item.vmid)
    : `${item.vmid ?? ''}/${String(name)}`
}

const byIdentity =
  (names: Names) =>
  (a: unknown, b: unknown): number => {
    const [left, right] = [translate(identity(a) ?? '', names), translate(identity(b) ?? '', names)]
    return left < right ? -1 : left > right ? 1 : 0
  }

export function translate(text: string, names: Names): string {
  let translated = text
  for (const [theirs, mine] of names) translated = translated.replaceAll(theirs, mine)
  return translated
}

/** What no two runs share inside a text. */
function normal(key: string, text: string): string {
  if (key === 'content') return text.split(',').sort().join(',')
  return plain(text)
}

function plain(text: string): string {
  return text
    .replace(/UPID:[^\s"]+:/g, 'UPID')
    .replace(/pveupload-[0-9a-f]{32}/g, 'pveupload-…')
    .replace(/qemu-img\.debian/g, 'qemu-img')
    .replace(/writing at byte \d+/g, 'writing at byte …')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replace(/BC:24:11:[0-9A-F:]{8}/g, 'BC:24:11:…')
    .replace(/\.conf\.tmp\.\d+/g, '.conf.tmp.…')
    .replace(/Plugin\.pm line \d+/g, 'Plugin.pm line …')
    .replace(/Temporary failure in name resolution/g, 'Name or service not known')
    .replace(/creation-qemu=[\d.]+,ctime=\d+/g, 'creation-qemu=…')
    .replace(/cluster_size=\d+ extended_l2=\w+( preallocation=metadata)?/g, 'cluster_size=…')
}
