import type { Config } from '../../lib/config.ts'
import { counted } from '../../lib/counted.ts'
import { evidenceOf } from '../../lib/mark.ts'
import { HOLD_TAG } from '../../lib/names.ts'
import type { Place, Row } from '../../lib/record.ts'
import { markAgain, placeholders } from '../../lib/symptoms.ts'
import type { Finding } from './event.ts'
import { about, type Verdict } from './finding.ts'
import type { Sight } from './sight.ts'

/** What is to become of a ready proxy: taken up again at `start`, or at `stop` and so made anew. */
export type Reaction = 'start' | 'stop'

export type Drift = {
  /** Counted as one of these. */
  state: 'fine' | 'drifted' | 'unknown'
  finding?: Finding
  reaction?: Reaction
  /** Rounds in a row in which it did not answer; 0 when it did, undefined when that is not known. */
  silentRounds?: number
}

/** … with what is done about it in words, which comes to nothing where a person holds the VM. */
type Judged = Drift & { will?: string }

/** States of QEMU that no start gets a VM out of. */
const BROKEN = new Set(['io-error', 'internal-error', 'guest-panicked'])

/** What a sight says of a ready proxy, and what is done about it by the policy of the configuration. Pure. */
export function judgeDrift(
  row: Row & { place: Place },
  sight: Sight,
  { config, silentBefore }: { config: Pick<Config, 'check' | 'deployment'>; silentBefore: number },
): Drift {
  const { place, uid } = row
  const node = sight.kind === 'vm' ? sight.node : place.node
  const say = about({ target: 'proxy', where: uid, node })
  if (sight.kind === 'unknown') return unknown(say.warn('Unknown', `VM ${place.vmid}: ${sight.reason}`))
  if (sight.kind === 'hidden') return { state: 'drifted', finding: hidden(place, say) }
  if (sight.kind === 'gone') {
    const text = `VM ${place.vmid} is gone, ${sight.instead} is at its number: it is made anew`
    return { state: 'drifted', finding: say.warn('Gone', text), reaction: 'stop' }
  }
  const { will, ...drift } = judgeVm(row, sight, say, { config, silentBefore })
  if (sight.held) return leftAlone(drift, place, say)
  const { finding } = drift
  return finding && will !== undefined
    ? { ...drift, finding: { ...finding, text: `${finding.text}: ${will}` } }
    : drift
}

const startedAgain = { will: 'it is started again', reaction: 'start' } as const
const madeAnew = { will: 'it is made anew', reaction: 'stop' } as const

const unknown = (finding: Finding): Drift => ({ state: 'unknown', finding })

/** With a token of a pool, our VM outside it looks like another's at its number, so nothing is done. */
function hidden({ vmid }: Place, say: Verdict): Finding {
  const text = `something holds the number ${vmid} that our token may not see: our VM outside its pool, or another’s`
  return say.fail(
    'Hidden',
    text,
    `qm config ${vmid}; if it bears our mark: pveum pool modify <pool> --vms ${vmid}`,
  )
}

/** Whoever put the tag there knows what they do: what drifted is said, and nothing is done. */
function leftAlone(drift: Drift, { vmid }: Place, say: Verdict): Drift {
  const { reaction: _, finding, ...rest } = drift
  const tag = `VM ${vmid} is tagged ${HOLD_TAG}, so it is left alone`
  if (!finding || finding.level === 'ok') return { ...rest, finding: say.note('Held', tag) }
  return { ...rest, finding: say.warn('Held', `${finding.text}; ${tag}`) }
}

type VmSight = Sight & { kind: 'vm' }
type By = { config: Pick<Config, 'check' | 'deployment'>; silentBefore: number }

function judgeVm(row: Row & { place: Place }, sight: VmSight, say: Verdict, by: By): Judged {
  const { vmid } = row.place
  const { owner, lock, status } = sight
  // Snapshots, backups and migrations stop and start VMs themselves, and take their lock away when they are done.
  if (lock !== undefined && lock !== 'suspended')
    return unknown(say.warn('Locked', `VM ${vmid} is locked (${lock}): a task is at work on it`))
  if (owner === 'doubtful') return { state: 'drifted', finding: doubtful(row, sight, say, by) }
  if (!status.running) return judgeStill(row, sight, say, by)
  if (owner === 'unmarked') {
    const text = `VM ${vmid} lost its mark, and name and seed prove it ours`
    const finding = say.warn('MarkLost', text)
    return { state: 'drifted', finding, will: 'the mark is written again', reaction: 'start' }
  }
  return judgeAnswer(row, sight, say, by)
}

function doubtful(row: Row & { place: Place }, { node }: VmSight, say: Verdict, { config }: By): Finding {
  const { vmid } = row.place
  const text = `VM ${vmid} bears no mark, and name and seed do not both prove it ours, so it is not touched`
  const evidence = evidenceOf(row, config.deployment)
  return say.fail('MarkDoubtful', text, markAgain({ ...placeholders, ...evidence, uid: row.uid, node, vmid }))
}

/** A VM that does not run. */
function judgeStill(
  row: Row & { place: Place },
  { status, node }: VmSight,
  say: Verdict,
  { config }: By,
): Judged {
  const { vmid } = row.place
  const { stopped } = config.check
  if (status.qmp === 'stopped') {
    const line = `qm start ${vmid} # on ${node}`
    const text = `VM ${vmid} is stopped`
    if (stopped === 'report') return { state: 'drifted', finding: say.warn('Stopped', text, line) }
    return {
      state: 'drifted',
      finding: say.warn('Stopped', text),
      ...(stopped === 'start' ? startedAgain : madeAnew),
    }
  }
  if (BROKEN.has(status.qmp)) {
    const line = `qm stop ${vmid} # on ${node}, once its storage is in order; the next round starts it`
    const text = `VM ${vmid} is in state ${status.qmp}`
    if (stopped !== 'replace') return { state: 'drifted', finding: say.fail('Broken', text, line) }
    return { state: 'drifted', finding: say.warn('Broken', text), ...madeAnew }
  }
  const text = `VM ${vmid} is in state ${status.qmp}: somebody paused it, or it is about to run`
  return unknown(say.warn('Paused', text, `qm resume ${vmid} # on ${node}`))
}

function judgeAnswer(
  row: Row & { place: Place },
  { probe, addresses, node }: VmSight,
  say: Verdict,
  { config, silentBefore }: By,
): Judged {
  const { place, address = '', endpoint = '' } = row
  // A guest without any address is about to get one, or silent, which shows by itself.
  if (addresses?.length && !addresses.includes(address)) {
    // The guest may list them by the thousand.
    const found = `${addresses.slice(0, 3).join(', ')}${addresses.length > 3 ? ', …' : ''}`
    const text = `VM ${place.vmid} is at ${found}, no longer at ${address}`
    const finding = say.warn('AddressChanged', text)
    return { state: 'drifted', finding, will: 'it is looked at anew', reaction: 'start', silentRounds: 0 }
  }
  if (!probe || probe.kind === 'answers') return { state: 'fine', silentRounds: 0 }
  if (probe.kind === 'refuses') {
    const text = `the proxy at ${endpoint} turns us away: ${probe.detail}`
    const secret = row.spec?.proxy.auth?.passwordParameter
    const asked = secret === undefined ? '' : ` and ${secret} in the store of passwords`
    const line = `compare verify.probeFrom in the configuration${asked} with what it was made with; then publish it with a higher generation`
    return { state: 'drifted', finding: say.warn('TurnedAway', text, line), silentRounds: 0 }
  }
  const { silent, silentRounds: most } = config.check
  const silentRounds = silentBefore + 1
  const text = `the proxy at ${endpoint} has not answered for ${counted(silentRounds, 'round')}: ${probe.detail}`
  if (silentRounds < most) return { state: 'drifted', finding: say.warn('Silent', text), silentRounds }
  if (silent === 'replace') {
    return { state: 'drifted', finding: say.warn('Silent', text), ...madeAnew, silentRounds }
  }
  const line = `qm terminal ${place.vmid} # on ${node}; to make it anew, publish it with a higher generation`
  return { state: 'drifted', finding: say.fail('Silent', text, line), silentRounds }
}
