import { defaultWorld } from '../../sim/index.ts'
import { caller } from '../sim/harness.ts'
import type { Lab } from './lab.ts'

type World = ReturnType<typeof defaultWorld>

/** What a token may see: only what is in its pool, or every VM of the cluster. */
export type Sight = 'pool' | 'audit'

/** The kinds of installation that an adversity is tried on. */
export const everywhere = [8, 9].flatMap((version) =>
  (['pool', 'audit'] as const).map((sight) => ({ version: version as 8 | 9, sight })),
)

/** The default world, its token with the sight asked for. */
export function worldOf({ version, sight }: { version: 8 | 9; sight: Sight }): World {
  const world = defaultWorld({ version })
  if (sight === 'pool') return world
  const may = ['egress@pve', 'egress@pve!ctl'].map((ugid) => ({
    path: '/vms',
    ugid,
    role: 'EgressAudit',
    propagate: true,
  }))
  return {
    ...world,
    roles: { ...world.roles, EgressAudit: ['VM.Audit'] },
    acl: [...(world.acl ?? []), ...may],
  }
}

/** What people do to the cluster beside us: with every privilege through the API, and as root of a host with `qm`. */
export function byHand(lab: Lab) {
  const { sim, clock } = lab
  const api = caller(sim, clock, lab.world.tokens.admin)

  async function ended(upid: unknown): Promise<string> {
    for (let waitedMs = 0; waitedMs < 600_000; waitedMs += 100) {
      const task = sim.tasks().find((candidate) => candidate.upid === upid)
      if (!task) throw new Error(`no such task: ${String(upid)}`)
      if (task.exitstatus !== undefined) return task.exitstatus
      await clock.advance(100)
    }
    throw new Error(`the task never ended: ${String(upid)}`)
  }
  const vmOf = (vmid: number) => {
    const vm = sim.vms().find((one) => one.vmid === vmid)
    if (!vm) throw new Error(`there is no VM ${vmid}`)
    return vm
  }
  function qm(vmid: number, command: string, ...words: string[]): void {
    const { exitCode, stderr } = sim.qm(vmOf(vmid).node, [command, String(vmid), ...words])
    if (exitCode !== 0) throw new Error(`qm ${command} ${vmid}: ${stderr}`)
  }

  return {
    api,
    qm,
    vm: vmOf,
    /** Begins to clone a VM, and does not wait for the end. */
    async beginClone(node: string, source: number, newid: number, form: Record<string, string> = {}) {
      const path = `/nodes/${node}/qemu/${source}/clone`
      const { data, message } = await api('POST', path, { newid: String(newid), ...form })
      if (typeof data !== 'string') throw new Error(`clone: ${message}`)
      return data
    },
    async clone(node: string, source: number, newid: number, form: Record<string, string> = {}) {
      const end = await ended(await this.beginClone(node, source, newid, form))
      if (end !== 'OK') throw new Error(`clone: ${end}`)
    },
    async stop(vmid: number) {
      await ended((await api('POST', `/nodes/${vmOf(vmid).node}/qemu/${vmid}/status/stop`)).data)
    },
    async destroy(vmid: number) {
      await this.stop(vmid)
      const path = `/nodes/${vmOf(vmid).node}/qemu/${vmid}?purge=1&destroy-unreferenced-disks=1`
      await ended((await api('DELETE', path)).data)
    },
    async deleteVolume(node: string, volid: string) {
      const [storage] = volid.split(':')
      const path = `/nodes/${node}/storage/${storage}/content/${encodeURIComponent(volid)}`
      await ended((await api('DELETE', path)).data)
    },
    /** Types the commands that a hint quotes, as its reader would, on the node it names. */
    typeHint(hint: string): string[] {
      const node = /on node (\w+)/.exec(hint)?.[1]
      const quoted = [...hint.matchAll(/`([^`]*)`/g)].flatMap(([, words = '']) => words.split(' && '))
      // What else it quotes is a name, or typed elsewhere: `egress dlq redrive` is the test's own next step.
      const commands = quoted.filter((words) => words.startsWith('qm '))
      if (node === undefined || commands.length === 0) throw new Error(`nothing to type in: ${hint}`)
      for (const command of commands) {
        const [, ...argv] = command.split(' ')
        const { exitCode, stderr } = sim.qm(node, argv)
        if (exitCode !== 0) throw new Error(`${command}: ${stderr}`)
      }
      return commands
    },
  }
}

/** A letter as `egress dlq redrive` sends it. */
export function resume(lab: Lab, uid: string): void {
  const turn = lab.row(uid)?.turn
  lab.queues.publish('create', JSON.stringify({ type: 'Resume', uid, turn }))
}
