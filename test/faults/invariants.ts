import { readMark } from '../../lib/mark.ts'
import type { RawAnswer, RawRequest } from '../../lib/proxmox/index.ts'
import type { SimVm } from '../../sim/index.ts'
import type { Lab } from '../lab/lab.ts'

/** The uid in the mark that a VM's configuration has shown to one invocation, by VMID. */
export type Shown = Map<number, string>

export type Watch = {
  /** Looks at the cluster and the claims as they are now. */
  look(): void
  /** … and at the rows. */
  lookAtRows(): void
  /** Judges a change as it is sent. */
  judge(request: Pick<RawRequest, 'method' | 'path'>, shown: Shown): void
  /** Judges a message as it is sent: one that was for a turn may lead to the next and no other. */
  judgeTurn(inHand: number | undefined, sends: number | undefined): void
  /** Notes what an answer has shown. */
  note(request: Pick<RawRequest, 'method' | 'path'>, answer: RawAnswer, shown: Shown): void
  broken: string[]
}

/**
 * The promises that hold at every moment, whatever dies when: one VM a uid; a VM stands only at a number claimed for its
 * uid; nothing that changes a VM is sent before its configuration showed our mark.
 */
export function watch(lab: Lab): Watch {
  const { deployment } = lab.config
  const strangers = new Set(lab.sim.vms().map(({ vmid }) => vmid))
  const broken: string[] = []
  const say = (words: string) => {
    if (!broken.includes(words)) broken.push(words)
  }
  const markOf = ({ config, vmid }: Pick<SimVm, 'config' | 'vmid'>) => {
    const mark = readMark(config.description === undefined ? undefined : String(config.description))
    return mark?.deployment === deployment && mark.vmid === vmid ? mark : undefined
  }

  return {
    broken,
    look() {
      const seen = new Map<string, number>()
      const claims = lab.claims.all()
      for (const vm of lab.sim.vms()) {
        if (strangers.has(vm.vmid)) continue
        const owner = claims.find(
          ({ partition, sort }) => partition === 'vmid#lab' && sort === String(vm.vmid),
        )?.owner
        if (owner === undefined) say(`VM ${vm.vmid} stands at a number that nobody has claimed`)
        const uid = markOf(vm)?.uid
        if (uid === undefined) continue
        if (owner !== undefined && owner !== uid)
          say(`VM ${vm.vmid} of ${uid} stands at a number claimed by ${owner}`)
        const other = seen.get(uid)
        if (other !== undefined) say(`${uid} has two VMs: ${other} and ${vm.vmid}`)
        seen.set(uid, vm.vmid)
      }
    },
    lookAtRows() {
      const claims = lab.claims.all()
      for (const { uid, place, phase, address } of lab.ledger.rows()) {
        const holder = claims.find(({ partition }) => partition === `address#lab#${address}`)?.owner
        if (phase === 'Ready' && holder !== uid)
          say(`${uid} is ready at ${address}, which is claimed by ${holder ?? 'nobody'}`)
        const owner =
          place &&
          claims.find(({ partition, sort }) => partition === 'vmid#lab' && sort === String(place.vmid))?.owner
        if (place && owner !== uid)
          say(`the row of ${uid} is at ${place.vmid}, which is claimed by ${owner ?? 'nobody'}`)
      }
    },
    judge({ method, path }, shown) {
      const vmid = changedVm(method, path)
      if (vmid === undefined) return
      const uid = shown.get(vmid)
      if (uid === undefined) say(`${method} ${path} was sent before VM ${vmid} had shown our mark`)
      const vm = lab.sim.vms().find((one) => one.vmid === vmid)
      if (vm && markOf(vm)?.uid !== uid)
        say(`${method} ${path} was sent to VM ${vmid}, which is not of ${uid} now`)
    },
    judgeTurn(inHand, sends) {
      if (inHand === undefined || sends === undefined || sends === inHand + 1) return
      say(`a message for turn ${inHand} was acted on, and sent on turn ${sends}`)
    },
    note({ method, path }, { status, body }, shown) {
      const vmid = Number(/\/qemu\/(\d+)\/config$/.exec(path)?.[1] ?? Number.NaN)
      if (method !== 'GET' || status !== 200 || Number.isNaN(vmid)) return
      const mark = markOf({ vmid, config: JSON.parse(body).data })
      if (mark) shown.set(vmid, mark.uid)
    },
  }
}

/** The VM that a call changes. A clone changes its target, which bears nothing yet, and not its source. */
function changedVm(method: string, path: string): number | undefined {
  const found = /\/qemu\/(\d+)(\/[a-z/]+)?(\?|$)/.exec(path)
  return method === 'GET' || !found || found[2] === '/clone' ? undefined : Number(found[1])
}
