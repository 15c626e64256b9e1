import { addVolume, removeVolume, storageConfig } from '../../sim/engine/storage.ts'
import type { AgentInterface, Durations } from '../../sim/index.ts'
import type { Scenario, Stage } from './replay.ts'
import { all, at, configure, copyFor, lastTask, lockByLabel, power, throwAway } from './scripts.ts'
import { labWorld, linkedClone } from './worlds.ts'

/** The world each scenario was recorded in, and what its script did on the host between the requests. */
export function scenarioOf(version: 8 | 9, name: string): Scenario {
  const make = scenarios[name]
  if (!make) throw new Error(`no world is known for ${name}`)
  return make(version)
}

/** Scenarios that are replayed here; those of HTTP itself have tests of their own. */
export const replayed = (): string[] => Object.keys(scenarios)

// In 9 the template kept the tags of the second scenario for a while, and there was a VM 201 before that.
const usual = (version: 8 | 9) => labWorld(version, version === 9 ? { tags: 'a;b' } : {})

const untagged = (version: 8 | 9) => labWorld(version)

function with201(version: 8 | 9) {
  const world = usual(version)
  if (version === 9) linkedClone(world, 201, 'perm')
  return world
}

/** The world with VMs in it that stood there already. */
function withVms(version: 8 | 9, vms: [number, string, Record<string, string | number>?, object?][]) {
  const world = usual(version)
  for (const [vmid, name, more, extra] of vms) linkedClone(world, vmid, name, more, extra)
  return world
}

/** The runner got this privilege only after the first recording. */
function withoutPrivilege(world: ReturnType<typeof labWorld>, privilege: string) {
  return {
    ...world,
    roles: { ...world.roles, Runner: world.roles?.Runner?.filter((name) => name !== privilege) ?? [] },
  }
}

/** pvestatd makes a round at that second of the recording, and every ten seconds from there. */
function rounds<W extends ReturnType<typeof labWorld>>(world: W, atSeconds: number): W {
  return { ...world, nodes: world.nodes.map((node) => ({ ...node, uptimeSeconds: 1000 - atSeconds })) }
}

const quick: Partial<Durations> = {
  forkMs: 5,
  cloneMs: 100,
  linkedCloneMs: 30,
  storageLockMs: 10,
  uploadMs: 50,
  deleteVolumeMs: 20,
  startMs: 350,
  stopMs: 100,
  destroyMs: 25,
  resizeMs: 30,
  configMs: 10,
}
const options = { durations: quick }

const mib = 1024 ** 2

export const scenarios: Record<string, (version: 8 | 9) => Scenario> = {
  '01-read-listings': (version) => ({
    world: version === 8 ? withoutPrivilege(labWorld(version), 'Datastore.Allocate') : labWorld(version),
  }),
  '02-auth-and-routing': (version) => ({ world: labWorld(version) }),
  '03-clone-success': (version) => ({ world: rounds(usual(version), version === 8 ? 1.05 : 5), options }),
  '04-clone-in-progress': (version) => ({
    world: usual(version),
    options,
    settle: all(at('clone', copyFor(16_000))),
  }),
  '04b-clone-in-progress-parallel': (version) => ({
    world: with201(version),
    options: { durations: { ...quick, cloneMs: 97_000 } },
    settle: all(at('at once: full clone of the template', copyFor(97_000))),
  }),
  '05-clone-errors': (version) => ({
    world: usual(version),
    options,
    settle: all(lockByLabel, throwAway, at('race', copyFor(5000))),
  }),
  '06-clone-killed': (version) => ({
    world: with201(version),
    options: { durations: { ...quick, cloneMs: 60_000, destroyMs: 5 } },
    settle: all(
      at('clone 144', (stage) => {
        // The copy runs out of space at once; the recording had qemu-img fail by itself.
        stage.cluster.durations.cloneMs = 1000
        storageConfig(stage.cluster, 'vmdata').totalBytes = 1
      }),
      at('kill -9 of the task worker', (stage) =>
        stage.cluster.tasks.kill(lastTask(stage, 'qmclone'), 'KILL'),
      ),
      at('qm unlock on the host', (stage) => configure(stage, 141, { lock: undefined })),
      at('qemu-img SIGKILLed: status', (stage) =>
        stage.cluster.tasks.kill(lastTask(stage, 'qmclone'), 'tool'),
      ),
    ),
  }),
  '07-tasks': (version) => ({
    world: usual(version),
    options: { durations: { ...quick, linkedCloneMs: 90 } },
    settle: all(
      at('start of a locked VM', (stage) => configure(stage, 151, { lock: 'backup' })),
      at('start with warnings', (stage) =>
        configure(
          stage,
          151,
          version === 8
            ? { lock: undefined, ide3: 'cdrom,media=cdrom', net0: 'virtio=BC:24:11:00:00:51' }
            : { lock: undefined, args: '-x' },
        ),
      ),
      at('', (stage, { t }) =>
        (t ?? 0) > 1.75 && stage.cluster.state.vms[151] ? configure(stage, 151, { args: undefined }) : 0,
      ),
    ),
  }),
  '08-iso-upload': (version) => ({ world: usual(version), options }),
  '09-iso-delete': (version) => ({ world: usual(version), options }),
  '10-config': (version) => ({
    world: withVms(version, [[171, 'cfg']]),
    options,
    settle: all(
      lockByLabel,
      at('delete=lock', (stage) => configure(stage, 171, { lock: 'backup' })),
      at('config after', (stage, { t }) =>
        (t ?? 0) > 2 ? configure(stage, 171, { lock: 'backup' }) : undefined,
      ),
    ),
  }),
  '11-resize-start-stop-destroy': (version) => ({
    world: rounds(withVms(version, [[181, 'rs']]), version === 8 ? 0.5 : 7.9),
    options,
    settle: all(
      // In 9 the VM was so new that pvestatd had not seen it yet.
      at('resize +1G', ({ cluster }, { label }) => {
        cluster.catchUp()
        if (version === 9 && label === 'resize +1G') delete cluster.state.rrd[181]
      }),
      destroyScript(),
    ),
  }),
  '12-status-agent': (version) => ({ world: withVms(version, [[191, 'ag']]), options, settle: agentScript }),
  '13-permissions': (version) => ({ world: withVms(version, [[201, 'perm']]), options }),
  '14-parallel': (version) => ({ world: usual(version), options }),
  '15-daemon-killed': (version) => ({
    world: untagged(version),
    options: { durations: { ...quick, cloneMs: 14_000 } },
    settle: all(
      at('kill -9 of pvedaemon master', (stage) => stage.hosts.setDaemon('pve1', 'pvedaemon', false)),
      at('pvedaemon started again', (stage) => stage.hosts.setDaemon('pve1', 'pvedaemon', true)),
      at('HOST RESET', (stage) => stage.hosts.reset('pve1')),
      at('slow clone 354', copyFor(version === 8 ? 70_000 : 16_000)),
    ),
  }),
  '15b-host-reset': (version) => ({
    world: with201(version),
    options: { durations: { ...quick, cloneMs: 60_000 } },
    settle: all(
      at('HOST RESET', (stage) => {
        stage.hosts.reset('pve1')
        stage.hosts.setDaemon('pve1', 'pveproxy', false)
      }),
      at('after the host reset: task status', (stage) => stage.hosts.setDaemon('pve1', 'pveproxy', true)),
    ),
  }),
  '16-two-nodes': (version) => ({ world: twoNodes(version), options, settle: twoNodesScript }),
  '17-listing-lag': (version) => ({
    world: usual(version),
    options: { durations: { ...quick, startMs: 700 } },
  }),
  '20-clone-inheritance': (version) => ({
    world: labWorld(version, version === 9 ? { tags: 'a;b' } : {}),
    options,
  }),
  '22-pvedaemon-saturated': (version) => ({
    world: untagged(version),
    options: { durations: { ...quick, cloneMs: 200_000 } },
    settle: all(at('slow clone end', endCopies)),
  }),
  '22b-596-but-done': (version) => ({
    world: untagged(version),
    options: { durations: { ...quick, cloneMs: 200_000 } },
    settle: all(at('slow clone end', endCopies)),
  }),
  '23-storage-trouble': (version) => ({
    world: troubledStorages(version),
    options,
    settle: all(
      at('VM on a disabled storage: start', (stage) => {
        const local = stage.cluster.state.storages.find(({ storage }) => storage === 'local')
        if (local) local.disable = true
      }),
    ),
  }),
  '24-pvestatd-dead': (version) => ({
    world: withVms(version, [[641, 'sd']]),
    options,
    settle: all(at('pvestatd killed', (stage) => stage.hosts.setDaemon('pve1', 'pvestatd', false))),
  }),
  '26-life-cycle-least-privilege': (version) => ({
    world: rounds(untagged(version), 9.5),
    options: { durations: { ...quick, startMs: 300 } },
    settle: all(
      at('VM taken out of the pool: config', (stage) => {
        for (const pool of Object.values(stage.cluster.state.pools)) pool.vmids = []
      }),
    ),
  }),
  '27-transient-errors': (version) => ({ world: usual(version), options }),
}

/** The copy that held the lock is ended by hand. */
function endCopies(stage: Stage): number | Promise<number> {
  const holder = Object.values(stage.cluster.state.tasks).find(
    (task) => task.type === 'qmclone' && !task.endMs,
  )
  if (holder) stage.cluster.tasks.kill(holder.upid, 'tool', 15)
  return 0
}

function destroyScript() {
  const disk = (vmid: number) => `9000/base-9000-disk-0.qcow2/${vmid}/vm-${vmid}-disk-0.qcow2`
  const volumeOf = ({ cluster }: Stage, vmid: number) =>
    Object.values(cluster.state.volumes).find((volume) => volume.name === disk(vmid))
  return all(
    lockByLabel,
    at('stop', (stage, { label }) => (label === 'stop' ? power(stage, 181, true) : undefined)),
    at('qemu SIGKILLed', (stage) => power(stage, 181, false)),
    at('start that QEMU refuses', (stage, { label }) => {
      if (label === 'start that QEMU refuses') configure(stage, 181, { args: '-nosuchoption' })
    }),
    at('start with the disk file missing', (stage, { label }) => {
      if (label !== 'start with the disk file missing') return
      configure(stage, 181, { args: undefined })
      const volume = volumeOf(stage, 181)
      if (volume) removeVolume(stage.cluster, volume)
    }),
    at('config with the disk file missing', (stage) => {
      addVolume(stage.cluster, 'pve1', storageConfig(stage.cluster, 'vmdata'), {
        name: disk(181),
        sizeBytes: 96 * mib,
        usedBytes: 200_704,
      })
    }),
    at('destroy with an unreferenced disk around', (stage, { label }) => {
      if (label !== 'destroy with an unreferenced disk around, plain') return
      const storage = storageConfig(stage.cluster, 'vmdata')
      addVolume(stage.cluster, 'pve1', storage, {
        name: '181/vm-181-disk-7.qcow2',
        sizeBytes: 4 * mib,
        usedBytes: 200_704,
      })
    }),
    at('lock suspended did not stop the destroy', (stage) => cloneAnew(stage, 181, 'rs')),
    at('destroy a VM whose disk file is gone', (stage, { label }) => {
      if (label !== 'destroy a VM whose disk file is gone') return
      cloneAnew(stage, 183, 'gone')
      const volume = volumeOf(stage, 183)
      if (volume) removeVolume(stage.cluster, volume)
    }),
    at('double destroy at once', (stage, { label }) => {
      if (label === 'double destroy at once' && !stage.cluster.state.vms[184]) cloneAnew(stage, 184, 'twice')
    }),
  )
}

/** A linked clone made by root between two requests. */
function cloneAnew({ cluster }: Stage, vmid: number, name: string): void {
  const template = cluster.state.vms[9000]
  if (!template) throw new Error('no template')
  const { template: _, ...config } = template.config
  const file = `9000/base-9000-disk-0.qcow2/${vmid}/vm-${vmid}-disk-0.qcow2`
  addVolume(cluster, 'pve1', storageConfig(cluster, 'vmdata'), {
    name: file,
    sizeBytes: 96 * mib,
    usedBytes: 200_704,
    parent: '../9000/base-9000-disk-0.qcow2',
  })
  cluster.state.vms[vmid] = {
    ...template,
    vmid,
    config: { ...config, name, scsi0: `vmdata:${file},size=96M` },
    boots: 0,
  }
}

const agentScript = all(
  lockByLabel,
  at('agent not configured, running', (stage) => power(stage, 191, true)),
  at('agent=1', (stage) => power(stage, 191, false)),
  at('running, agent configured', (stage) => power(stage, 191, true)),
  at('fake agent answers', ({ cluster }, { response }) => {
    // What the fake agent of the recording said is what the guest says here.
    const { data } = (response ?? { body: {} }).body as { data: { result: AgentInterface[] } }
    cluster.guestFactory = async () => ({ interfaces: () => data.result, close: async () => {} })
    const vm = cluster.state.vms[191]
    if (vm) cluster.guests.boot(vm, false)
  }),
  at('agent answers CommandNotFound', ({ cluster }) => {
    const error = {
      class: 'CommandNotFound',
      desc: 'The command guest-network-get-interfaces has not been found',
    }
    cluster.faults.add({ match: {}, times: 1, effect: { kind: 'agentError', error } })
  }),
  at('agent pings but the command hangs', ({ cluster }) => {
    cluster.faults.add({ match: {}, times: 1, effect: { kind: 'agentHangs' } })
  }),
  at('QEMU process stopped', ({ cluster }) => {
    cluster.guestFactory = async () => ({ interfaces: () => undefined, close: async () => {} })
    const vm = cluster.state.vms[191]
    if (vm) cluster.guests.boot(vm, false)
  }),
)

function twoNodes(version: 8 | 9) {
  const world = labWorld(version, { name: 'tmpl1' })
  const [first] = world.nodes
  if (!first) throw new Error('a node is missing')
  const { cores: _, ...config } = world.vms[0]?.config ?? {}
  world.vms = [{ vmid: 9000, node: 'pve1', config }]
  return {
    ...world,
    cluster: 'lab',
    nodes: [first, { ...first, name: 'pve2', ip: '10.99.0.2' }],
    volumes: [
      { storage: 'vmdata', node: 'pve1', name: '9000/base-9000-disk-0.qcow2', sizeBytes: 96 * mib },
      { storage: 'vmdata', node: 'pve2', name: '9001/base-9001-disk-0.qcow2', sizeBytes: 96 * mib },
    ],
    vms: [
      ...world.vms,
      {
        vmid: 9001,
        node: 'pve2',
        config: { ...config, name: 'tmpl2', scsi0: 'vmdata:9001/base-9001-disk-0.qcow2,size=96M' },
      },
    ],
  }
}

const twoNodesScript = all(({ cluster, hosts }: Stage, { label = '' }) => {
  const state = label.startsWith('pve2: pveproxy stopped')
    ? 'down'
    : label.startsWith('pve2: pveproxy hung') || label.includes('SIGSTOP')
      ? 'hung'
      : label.startsWith('link cut')
        ? 'unreachable'
        : 'up'
  if (cluster.state.nodes[1]?.state !== state) hosts.setState('pve2', state)
  const daemon = label.startsWith('pve2: pvedaemon stopped')
  if (cluster.state.nodes[1]?.stopped.includes('pvedaemon') !== daemon)
    hosts.setDaemon('pve2', 'pvedaemon', !daemon)
  cluster.state.expectedVotes = label.includes('expected votes 1') ? 1 : undefined
  return 0
})

function troubledStorages(version: 8 | 9) {
  const world = untagged(version)
  const small = { type: 'dir' as const, content: ['images', 'iso'], totalBytes: 20 * mib }
  world.storages.push(
    { storage: 'small', path: '/var/lib/small', ...small },
    {
      storage: 'gone',
      path: '/var/lib/gone',
      ...small,
      offline:
        "unable to activate storage 'gone' - directory is expected to be a mount point but is not mounted: '/var/lib/gone'",
    },
    { storage: 'ro', path: '/var/lib/ro', ...small, readOnly: true },
  )
  world.volumes?.push(
    { storage: 'ro', name: 'iso/r.iso', sizeBytes: 2 },
    { storage: 'local', name: '632/vm-632-disk-0.qcow2', sizeBytes: 96 * mib },
  )
  linkedClone(world, 632, 'onlocal', { scsi0: 'local:632/vm-632-disk-0.qcow2,size=96M' })
  return world
}
