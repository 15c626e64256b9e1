import { keeperOf } from '../../lib/claims.ts'
import { type Mark, readMark } from '../../lib/mark.ts'
import type { Endpoint, RawAnswer, RawRequest } from '../../lib/proxmox/index.ts'
import type { Row } from '../../lib/record.ts'
import type { SimVm } from '../../sim/index.ts'
import { clusterOf, type Lab } from '../lab/lab.ts'

/** What one invocation has seen and done: the uid in the mark that a VM's configuration has shown, by `cluster/vmid`; changes sent. */
export type Shown = { uids: Map<string, string>; changes: Set<string> }

export type Watch = {
  /** Looks at the cluster and the claims as they are now. */
  look(): void
  /** … and at the rows. */
  lookAtRows(): void
  /** Judges a change as it is sent. */
  judge(sent: Sent, shown: Shown): void
  /** Judges a message as it is sent: one that was for a turn may lead to the next and no other. */
  judgeTurn(inHand: number | undefined, sends: number | undefined): void
  /** Notes what an answer has shown. */
  note(sent: Sent, answer: RawAnswer, shown: Shown): void
  /** A call that is on its way, and carried out when nobody waits for it any more; the function returned says that it arrived. */
  awaits(sent: Sent | undefined): () => void
  say(words: string): void
  /** Numbers of VMs that are none of our business, in any cluster: templates, and what people put there. */
  strangers: Set<number>
  broken: string[]
}

type Sent = [endpoint: Endpoint, request: RawRequest]
type Claimed = ReturnType<Lab['claims']['all']>
const claimOn = (claims: Claimed, cluster: string, vmid: number) =>
  claims.find(({ partition, sort }) => partition === `vmid#${cluster}` && sort === String(vmid))

/**
 * The promises that hold at every moment, whatever dies when: one VM a uid; a VM stands only at a number claimed for its
 * uid; nothing that changes a VM is sent before its configuration showed our mark, nor twice; nothing is stopped or
 * destroyed while another call to that VM may still be carried out; no seed outlives its VM; what failed is reported.
 */
export function watch(lab: Lab, tell: (words: string) => void = () => {}): Watch {
  const { deployment } = lab.config
  const strangers = new Set([...lab.sims.values()].flatMap((sim) => sim.vms().map(({ vmid }) => vmid)))
  const broken: string[] = []
  const onTheWay = new Set<Sent>()
  const before = new Map<string, Row>()
  const say = (words: string) => {
    if (broken.includes(words)) return
    broken.push(words)
    tell(words)
  }
  const seedOf = new RegExp(`iso/egress-${deployment}-(.*)-g\\d+\\.iso$`)
  const marks = new Map<string, Mark | undefined>()
  const readOnce = (description: string) => {
    if (!marks.has(description)) marks.set(description, readMark(description))
    return marks.get(description)
  }
  const markOf = ({ config, vmid }: Pick<SimVm, 'config' | 'vmid'>) => {
    const mark = readOnce(String(config.description ?? ''))
    return mark?.deployment === deployment && mark.vmid === vmid ? mark : undefined
  }

  /** What a row went through between two looks: a failure is in the dead letters before the row rests, and is not skipped. */
  function judgePassage(was: Row | undefined, row: Row): void {
    const { uid, turn, phase } = row
    if (was && turn < was.turn) say(`the row of ${uid} goes back from turn ${was.turn} to ${turn}`)
    const letters = lab.queues.deadLetters.filter(({ obituary }) => obituary.uid === uid)
    if (phase === 'Failed' && !letters.some(({ obituary }) => obituary.turn === turn - 1))
      say(`${uid} has failed in turn ${turn - 1}, and no dead letter says so`)
    const isAnothersWish = was && (was.wish !== row.wish || was.generation !== row.generation)
    if (was?.step === 'report' && row.step !== 'report' && phase !== 'Failed' && !isAnothersWish)
      say(`${uid} has failed, and goes on at ${row.step} before anybody was told`)
  }

  return {
    broken,
    strangers,
    say,
    awaits(sent) {
      if (!sent || sent[1].method === 'GET') return () => {}
      onTheWay.add(sent)
      return () => void onTheWay.delete(sent)
    },
    look() {
      const seen = new Map<string, string>()
      const claims = lab.claims.all()
      for (const [cluster, sim] of lab.sims) {
        for (const vm of sim.vms()) {
          if (strangers.has(vm.vmid)) continue
          const name = `${cluster}/${vm.vmid}`
          const owner = claimOn(claims, cluster, vm.vmid)?.owner
          if (owner === undefined) say(`VM ${name} stands at a number that nobody has claimed`)
          const uid = markOf(vm)?.uid
          if (uid === undefined) continue
          if (owner !== undefined && owner !== uid)
            say(`VM ${name} of ${uid} stands at a number claimed by ${owner}`)
          const other = seen.get(uid)
          if (other !== undefined) say(`${uid} has two VMs: ${other} and ${name}`)
          seen.set(uid, name)
        }
        for (const { volid } of sim.volumes()) {
          const uid = seedOf.exec(volid)?.[1]
          if (uid !== undefined && !seen.get(uid)?.startsWith(`${cluster}/`))
            say(`the seed ${volid} is there, and no VM of ${uid}`)
        }
      }
    },
    lookAtRows() {
      const claims = lab.claims.all()
      for (const row of lab.ledger.rows()) {
        const { uid, place, phase, address } = row
        const cluster = place?.cluster ?? ''
        const was = before.get(uid)
        // One that was lost was another.
        judgePassage(was?.createdAt === row.createdAt ? was : undefined, row)
        before.set(uid, row)
        const holder = claims.find(({ partition }) => partition === `address#${cluster}#${address}`)?.owner
        if (phase === 'Ready' && holder !== uid)
          say(`${uid} is ready at ${address}, which is claimed by ${holder ?? 'nobody'}`)
        // An orphan's row has yet to see whether the number is left to it.
        if (!place || place.node === '') continue
        const claim = claimOn(claims, cluster, place.vmid)
        if (claim?.owner !== (row.orphanOf ?? uid))
          say(`the row of ${uid} is at ${place.vmid}, which is claimed by ${claim?.owner ?? 'nobody'}`)
        if (claim && keeperOf(claim) !== uid)
          say(`the row of ${uid} is at ${place.vmid}, which is left to ${keeperOf(claim)}`)
      }
    },
    judge([endpoint, { method, path, body }], shown) {
      const cluster = clusterOf(endpoint)
      const change = `${cluster} ${method} ${path} ${Buffer.from(body ?? []).toString('latin1')}`
      if (method !== 'GET' && shown.changes.has(change))
        say(`${method} ${path} was sent twice by one process`)
      shown.changes.add(change)
      const vmid = changedVm(method, path)
      if (vmid === undefined) return
      for (const [where, other] of onTheWay) {
        if (ends(method, path) && clusterOf(where) === cluster && vmid === targetOf(other))
          say(`${method} ${path} was sent while ${other.method} ${other.path} may still be carried out`)
      }
      const uid = shown.uids.get(`${cluster}/${vmid}`)
      if (uid === undefined) say(`${method} ${path} was sent before VM ${vmid} had shown our mark`)
      const vm = lab.sims
        .get(cluster)
        ?.vms()
        .find((one) => one.vmid === vmid)
      if (vm && markOf(vm)?.uid !== uid)
        say(`${method} ${path} was sent to VM ${vmid}, which is not of ${uid} now`)
    },
    judgeTurn(inHand, sends) {
      if (inHand === undefined || sends === undefined || sends === inHand + 1) return
      say(`a message for turn ${inHand} was acted on, and sent on turn ${sends}`)
    },
    note([endpoint, { method, path }], { status, body }, shown) {
      const vmid = Number(/\/qemu\/(\d+)\/config$/.exec(path)?.[1] ?? Number.NaN)
      if (method !== 'GET' || status !== 200 || Number.isNaN(vmid)) return
      const mark = markOf({ vmid, config: JSON.parse(body).data })
      if (mark) shown.uids.set(`${clusterOf(endpoint)}/${vmid}`, mark.uid)
    },
  }
}

/** Whether a call stops or destroys a VM. */
const ends = (method: string, path: string) =>
  /\/qemu\/\d+(\?|$)/.test(path) ? method === 'DELETE' : path.endsWith('/status/stop')

/** The VM that a call changes or makes. */
function targetOf({ method, path, body }: RawRequest): number | undefined {
  if (!path.endsWith('/clone')) return changedVm(method, path)
  return Number(new URLSearchParams(Buffer.from(body ?? []).toString()).get('newid'))
}

/** The VM that a call changes. A clone changes its target, which bears nothing yet, and not its source. */
function changedVm(method: string, path: string): number | undefined {
  const found = /\/qemu\/(\d+)(\/[a-z/]+)?(\?|$)/.exec(path)
  return method === 'GET' || !found || found[2] === '/clone' ? undefined : Number(found[1])
}
