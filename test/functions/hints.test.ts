import { afterEach, describe, expect, it } from 'vitest'
import type { Row, StepName } from '../../lib/record.ts'
import { defaultWorld, type FaultRule } from '../../sim/index.ts'
import { atStep, type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'

// Each failure is provoked, its hint is taken at its word, and then a redrive is all it needs.

let lab: Lab
afterEach(async () => lab?.close())

/** Types every command between backticks that belongs to a host, on the node it names, else on any. */
function follow(hint: string): string[] {
  const typed: string[] = []
  let node = 'pve1'
  for (const [, named, command = ''] of hint.matchAll(/[Oo]n node ([\w-]+)|`([^`]+)`/g)) {
    if (named !== undefined) node = named
    for (const line of command.split(' && ').map((text) => text.trim())) {
      if (!/^(qm (?!config|terminal|agent|disk)|pveum (?!user)|pvesm set|pvesh set)/.test(line)) continue
      const { exitCode, stderr } = lab.sim.root(node, words(line))
      // A pool is added if there is none of its name.
      if (!stderr.includes('already exists'))
        expect({ line, exitCode, stderr }).toMatchObject({ exitCode: 0 })
      typed.push(line)
    }
  }
  return typed
}

/** A line taken apart as a shell does. */
const words = (line: string) =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain = '']) => quoted ?? plain)

async function failed(code: string): Promise<Row> {
  const row = await settled(lab, 'alpha')
  expect(row).toMatchObject({ phase: 'Failed', problem: { code, permanent: true } })
  expect(lab.queues.deadLetters.at(-1)?.obituary).toMatchObject({
    code,
    uid: 'alpha',
    problem: { hint: row.problem?.hint },
  })
  // Most begin again where they stopped; of the others only their publisher can make something.
  if (hintOf(row).includes('redrive')) expect(hintOf(row)).toMatch(/`egress dlq redrive alpha`$/)
  else expect(hintOf(row)).toMatch(/publish.* a higher generation$/)
  return row
}

async function redriven(row: Row): Promise<Row> {
  // What was typed on a host takes a moment there.
  await lab.clock.advance(10_000)
  const side = (['stop', 'unseed', 'destroy', 'release'] as (StepName | undefined)[]).includes(row.failedStep)
    ? 'delete'
    : 'create'
  lab.queues.publish(side, JSON.stringify({ type: 'Resume', uid: 'alpha', turn: row.turn }))
  return settled(lab, 'alpha')
}

const hintOf = (row: Row) => row.problem?.hint ?? ''

/** The default world with a privilege less, or a role not given. */
function without(version: 8 | 9, role: string, privilege?: string) {
  const world = defaultWorld({ version })
  const { roles = {}, acl = [] } = world
  if (privilege === undefined) return { ...world, acl: acl.filter((entry) => entry.role !== role) }
  return { ...world, roles: { ...roles, [role]: (roles[role] ?? []).filter((one) => one !== privilege) } }
}

describe.each([8, 9] as const)('a privilege that is missing, on PVE %i', (version) => {
  // Report: bpg/terraform-provider-proxmox#2091
  // Report: sergelogvinov/proxmox-csi-plugin#460
  it.each([
    ['EgressTemplate', 'VM.Clone', 'clone'],
    ['EgressVm', 'VM.Allocate', 'clone'],
    ['EgressDisks', 'Datastore.AllocateSpace', 'reserve'],
    ['EgressNetwork', 'SDN.Use', 'clone'],
    ['EgressSeeds', 'Datastore.AllocateTemplate', 'seed'],
    ['EgressVm', 'VM.Config.CPU', 'configure'],
    ['EgressVm', 'VM.Config.Options', 'configure'],
    ['EgressVm', 'VM.Config.Network', 'configure'],
    ['EgressVm', 'VM.Config.CDROM', 'configure'],
    ['EgressVm', 'VM.Config.Disk', 'configure'],
    ['EgressVm', 'VM.PowerMgmt', 'start'],
    ['EgressVm', version === 8 ? 'VM.Monitor' : 'VM.GuestAgent.Audit', 'address'],
  ])('%s without %s fails at %s, and its hint grants it', async (role, privilege, step) => {
    lab = await openLab({ version, world: without(version, role, privilege) })
    lab.request('alpha', { spec: { size: { cores: 2 } } })
    const row = await failed('Forbidden')
    expect(row.failedStep).toBe(step)
    expect(hintOf(row)).toContain(`pveum role modify ${role} --privs ${privilege} --append 1`)
    expect(hintOf(row)).toContain("--users egress@pve --tokens 'egress@pve!ctl'")
    expect(follow(hintOf(row)).filter((line) => !line.startsWith('pveum pool'))).toHaveLength(2)
    expect((await redriven(row)).phase).toBe('Ready')
  })

  it.each(['EgressTemplate', 'EgressVm', 'EgressDisks', 'EgressNetwork', 'EgressSeeds'])(
    'the role %s that was given to nobody is given by its hint',
    async (role) => {
      lab = await openLab({ version, world: without(version, role) })
      lab.request('alpha')
      const row = await failed('Forbidden')
      follow(hintOf(row))
      expect((await redriven(row)).phase).toBe('Ready')
    },
  )

  it('to delete seeds fails a deletion, and its hint grants it', async () => {
    lab = await openLab({ version })
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.sim.root('pve1', ['pveum', 'role', 'modify', 'EgressSeeds', '--privs', 'Datastore.AllocateTemplate'])
    lab.remove('alpha')
    const row = await failed('Forbidden')
    expect(row.failedStep).toBe('unseed')
    follow(hintOf(row))
    expect((await redriven(row)).phase).toBe('Deleted')
    expect(lab.leftOvers()).toEqual({ vms: [], volumes: [] })
  })
})

type Case = {
  options?: LabOptions
  /** Brings the failure about, from a request that was just sent. */
  provoke(): unknown
  /** What the hint says besides its commands: in the configuration, at the publisher's. */
  mend?(row: Row): unknown
  /** What the hint must say. */
  says: RegExp
  end?: Row['phase']
  /** The part of the hint that is for this case, where it has one for each. */
  part?(hint: string): string
  /** What else must hold at the end. */
  check?(): void
}

const fault = (rule: FaultRule) => void lab.sim.faults.add(rule)
const answers = (
  method: string,
  path: string,
  answer: { status: number; message?: string; errors?: Record<string, string> },
) => fault({ match: { method, path }, effect: { kind: 'answer', answer } })
const calm = () => lab.sim.faults.clear()
const root = (...argv: string[]) => expect(lab.sim.root('pve1', argv)).toMatchObject({ exitCode: 0 })
const theVm = () => {
  const vm = lab.sim.vms().find(({ template }) => !template)
  if (!vm) throw new Error('there is no VM')
  return vm
}
const onItsNode = (...argv: string[]) =>
  expect(lab.sim.root(theVm().node, argv)).toMatchObject({ exitCode: 0 })
/** A part of the configuration, as an edit of its file and a deployment would change it. */
const cluster = () => lab.config.clusters.lab as NonNullable<Lab['config']['clusters'][string]>
const zone = () => lab.config.zones['lab-1'] as NonNullable<Lab['config']['zones'][string]>
const again = (over: Record<string, unknown> = {}) => lab.request('alpha', { generation: 2, ...over })
const auth = { spec: { proxy: { auth: { username: 'a', passwordParameter: 'team/a' } } } }

const setAll = (state: 'up' | 'down') => {
  for (const { name } of lab.sim.nodes()) lab.sim.setNode(name, state)
}

const passwords: Record<string, string> = {}
let isSilent = false
let hasMirror = true

const cases: Record<string, Case> = {
  'AddressTaken, another proxy having it': {
    provoke: async () => {
      const row = await atStep(lab, 'alpha', 'address')
      const address = '127.9.9.9'
      await lab.claims.takeAddress('lab', address, 'beta')
      const told = [{ 'ip-address': address, 'ip-address-type': 'ipv4', prefix: 8 }]
      const data = { result: [{ name: 'eth0', 'hardware-address': row.mac, 'ip-addresses': told }] }
      fault({ match: { path: '/agent/' }, effect: { kind: 'answer', answer: { status: 200, data } } })
    },
    mend: calm,
    says: /egress explain <the other>.*machine-id.*egress dlq redrive alpha/,
  },
  'AgentNeverUp, its first boot without a package mirror': {
    options: { hasMirror: () => hasMirror },
    provoke: () => {
      hasMirror = false
    },
    mend: () => {
      hasMirror = true
    },
    says: /cloud-init-output\.log.*qm stop/,
  },
  'AgentNeverUp, its agent hanging': {
    provoke: () => fault({ match: {}, effect: { kind: 'agentHangs' } }),
    mend: calm,
    says: /qm terminal .*qm stop/,
  },
  'AgentOff, switched off by hand': {
    provoke: async () => {
      await atStep(lab, 'alpha', 'address')
      onItsNode('qm', 'set', String(theVm().vmid), '--delete', 'agent')
    },
    says: /qm set \d+ --agent enabled=1/,
  },
  'Crashing, whoever works on it dying': {
    provoke: async () => {
      await atStep(lab, 'alpha', 'clone')
      for (let death = 0; death <= 10; death++) {
        await lab.ledger.take('alpha', { kind: 'event' })
        await lab.clock.advance(300_000)
      }
    },
    says: /filter-log-events .*functionTimeoutSeconds/,
  },
  'Forbidden, its VM taken out of the pool': {
    provoke: async () => {
      await atStep(lab, 'alpha', 'configure')
      root('pvesh', 'set', '/pools/egress', '--vms', String(theVm().vmid), '--delete', '1')
    },
    says: /pvesh set \/pools\/egress --vms \d+/,
  },
  'Forbidden, the pool not there': {
    options: { cluster: { pool: 'nopool' } },
    provoke: () => undefined,
    says: /pveum pool add nopool` if there is no such pool/,
  },
  'InUse, a linked clone hanging on it': {
    provoke: async () => {
      await settled(lab, 'alpha')
      lab.remove('alpha')
      const exitText = "base volume 'vmdata:5917/base-5917-disk-0.qcow2' is still in use by linked cloned"
      fault({ match: { taskType: 'qmdestroy' }, effect: { kind: 'taskFails', exitText, effects: 'none' } })
    },
    mend: calm,
    says: /grep -l "base-\d+-"/,
    end: 'Deleted',
  },
  'MarkLost, its notes overwritten': {
    provoke: async () => {
      await atStep(lab, 'alpha', 'configure')
      onItsNode('qm', 'set', String(theVm().vmid), '--description', 'mine')
    },
    says: /net0` decides, ours has 02:[0-9a-f:]+ .* called egress-alpha-\w+, has local:iso\/egress-test-alpha-g1\.iso in `ide2` and the tags egress;egress-test.*qm set \d+ --description '\{"egress":.*in place of all its notes/,
    part: (hint) => hint.slice(0, hint.indexOf('If it is another’s')),
  },
  'MarkLost, being another’s': {
    provoke: async () => {
      await atStep(lab, 'alpha', 'configure')
      onItsNode('qm', 'set', String(theVm().vmid), '--description', 'mine')
    },
    says: /If it is another’s, `qm set \d+ --name <another name> --ide2 none,media=cdrom`/,
    part: (hint) => hint.slice(hint.indexOf('If it is another’s')).replace('<another name>', 'theirs'),
    mend: () => {
      const { vmid, node } = theVm()
      putBack = () => {
        const place = lab.row('alpha')?.place
        expect(place?.vmid).not.toBe(vmid)
        expect(lab.sim.qm(node, ['config', String(vmid)]).stdout).toContain('name: theirs')
      }
    },
    check: () => putBack(),
  },
  'Misconfigured, its zone gone from the configuration': {
    provoke: async () => {
      await atStep(lab, 'alpha', 'reserve')
      const kept = zone()
      delete lab.config.zones['lab-1']
      putBack = () => {
        lab.config.zones['lab-1'] = kept
      }
    },
    mend: () => putBack(),
    says: /put it back into the configuration/,
  },
  'PasswordMissing, not stored': {
    options: { passwords },
    provoke: () => again(auth),
    mend: () => {
      passwords['team/a'] = 'fine'
    },
    says: /put the line `team\/a: <password>` into \S+parameters\.yml/,
  },
  'ProbeRefused, our address not admitted': {
    options: { config: { verify: { probe: 'http', probeUrl: 'http://page.test/', probeFrom: [] } } },
    provoke: () => undefined,
    mend: () => {
      lab.config.verify.probeFrom = ['127.0.0.1/32']
      again()
    },
    says: /verify\.probeFrom.*higher generation/,
  },
  'Protected, against deletion': {
    provoke: async () => {
      await settled(lab, 'alpha')
      onItsNode('qm', 'set', String(theVm().vmid), '--protection', '1')
      lab.remove('alpha')
    },
    says: /qm set \d+ --protection 0`/,
    end: 'Deleted',
  },
  'Protected, tagged and against deletion': {
    provoke: async () => {
      await settled(lab, 'alpha')
      onItsNode(
        'qm',
        'set',
        String(theVm().vmid),
        '--protection',
        '1',
        '--tags',
        'egress;egress-hold;egress-test',
      )
      lab.remove('alpha')
    },
    says: /takes that off when done with it; .*qm set \d+ --protection 0 --tags 'egress;egress-test'`/,
    end: 'Deleted',
  },
  'ProxyNeverAnswered, the proxy silent': {
    options: {
      interpose: (outside) => {
        const { probe } = outside.surroundings
        const http: typeof probe.http = async (target) =>
          isSilent ? { kind: 'silent', detail: 'ECONNREFUSED' } : probe.http(target)
        return { ...outside, surroundings: { ...outside.surroundings, probe: { ...probe, http } } }
      },
    },
    provoke: () => {
      isSilent = true
    },
    mend: () => {
      isSilent = false
    },
    says: /qm terminal .*port 3128/,
  },
  'Rejected, a setting refused': {
    provoke: () => answers('PUT', '/config$', { status: 400, errors: { cores: 'too many' } }),
    mend: calm,
    says: /^cores: too many\. /,
  },
  'SeedRefused, a password that no seed can hold': {
    options: { passwords },
    provoke: () => {
      passwords['team/a'] = 'not fine: "'
      again(auth)
    },
    mend: () => {
      passwords['team/a'] = 'fine'
      lab.request('alpha', { generation: 3, ...auth })
    },
    says: /correct proxy\.auth\.password, then publish the proxy with a higher generation/,
  },
  'StepTimedOut, locked for a night': {
    provoke: async () => {
      await atStep(lab, 'alpha', 'configure')
      onItsNode('qm', 'set', String(theVm().vmid), '--lock', 'backup')
    },
    says: /qm unlock \d+/,
  },
  'StuckLock, its clone killed': {
    options: { cluster: { clone: 'full' } },
    provoke: async () => {
      await lab.run(() => lab.row('alpha')?.task?.step === 'clone')
      await lab.clock.advance(100)
      lab.sim.killTask(lab.row('alpha')?.task?.upid ?? '', 'KILL')
    },
    says: /qm unlock \d+ && qm destroy \d+/,
  },
  'TemplateProblem, a wrong number in the configuration': {
    options: { nodes: 1, cluster: { images: { 'debian-12': { pve1: 9000 } } } },
    provoke: async () => {
      await atStep(lab, 'alpha', 'clone')
      answers('POST', '/qemu/9000/clone$', {
        status: 500,
        message: "unable to find configuration file for VM 9000 on node 'pve1'",
      })
    },
    mend: calm,
    says: /is clusters\.lab\.images\.debian-12\.pve1 the right number\? .*`qm config 9000`/,
  },
  'UnsupportedStorage, ISO images not allowed on it': {
    provoke: () => root('pvesm', 'set', 'local', '--content', 'vztmpl,backup'),
    says: /pvesm set local --content iso/,
  },
  'UserDataLost, no longer stored': {
    options: {
      interpose: (outside) => {
        const { surroundings } = outside
        const userData = { ...surroundings.userData, get: async () => undefined }
        return { ...outside, surroundings: { ...surroundings, userData } }
      },
    },
    provoke: () => again({ spec: { userData: '#cloud-config\n{}\n' } }),
    mend: () => lab.request('alpha', { generation: 3 }),
    says: /publishes the proxy with a higher generation/,
  },
  'VmBroken, its disk failing': {
    provoke: async () => {
      await atStep(lab, 'alpha', 'start')
      onItsNode('qm', 'start', String(theVm().vmid))
      await lab.clock.advance(10_000)
      lab.sim.setQemu(theVm().vmid, 'io-error')
    },
    says: /qm terminal .*qm stop \d+/,
  },
  'VmGone, deleted by somebody each time': {
    provoke: async () => {
      for (let time = 0; time < 4; time++) {
        await atStep(lab, 'alpha', 'configure')
        const { vmid } = theVm()
        onItsNode('qm', 'destroy', String(vmid), '--purge', '1')
        await lab.clock.advance(10_000)
        await lab.run(() => lab.row('alpha')?.step !== 'configure')
      }
    },
    says: /pvenode task list --vmid \d+/,
  },
  'VolumeMissing, its seed vanishing each time': {
    provoke: () => {
      const exitText = "volume 'local:iso/egress-test-alpha-g1.iso' does not exist"
      fault({ match: { taskType: 'qmstart' }, effect: { kind: 'taskFails', exitText, effects: 'none' } })
    },
    mend: calm,
    says: /who removes local:iso\/egress-test-alpha-g1\.iso\? .*pvesm list local/,
  },

  // Report: rgl/terraform-proxmox-talos#2
  'RetriesExhausted, by NoNode': {
    options: { config: { zones: { 'lab-1': { cluster: 'lab', nodes: ['pve2'] } } } },
    provoke: async () => {
      lab.sim.setNode('pve2', 'unreachable')
      // The others notice a little later.
      await lab.clock.advance(60_000)
    },
    mend: () => lab.sim.setNode('pve2', 'up'),
    says: /bring one back, or add a node to zones\.lab-1\.nodes/,
  },
  // Report: PegaProx/project-pegaprox#521
  // Report: hashicorp/packer-plugin-proxmox#104
  'RetriesExhausted, by NoSpace': {
    provoke: () => {
      const exitText = 'write to temporary file failed - No space left on device'
      fault({ match: { taskType: 'imgcopy' }, effect: { kind: 'taskFails', exitText, effects: 'none' } })
    },
    mend: calm,
    says: /pvesm status --storage vmdata.*df -h \/var\/tmp/,
  },
  'RetriesExhausted, by RangeExhausted': {
    options: { cluster: { vmids: { from: 9001, to: 9001 } } },
    provoke: () => undefined,
    mend: () => {
      cluster().vmids = { from: 5000, to: 5999 }
    },
    says: /widen vmids of cluster lab/,
  },
  'RetriesExhausted, by StorageOffline': {
    options: { config: { timings: { retryWindowSeconds: { StorageOffline: 600 } } } },
    provoke: () => root('pvesm', 'set', 'vmdata', '--disable', '1'),
    says: /pvesm set vmdata --disable 0/,
  },
  'RetriesExhausted, by Unauthorized': {
    provoke: () => answers('GET', '^/nodes$', { status: 401 }),
    mend: calm,
    says: /pveum user token list egress@pve`: is ctl there/,
  },
  'RetriesExhausted, by Unknown': {
    provoke: () => answers('POST', '/clone$', { status: 500, message: 'no bananas left' }),
    mend: calm,
    says: /its reason has them/,
  },
  'RetriesExhausted, by Unexpected': {
    provoke: () =>
      fault({ match: { path: '^/nodes$' }, effect: { kind: 'answer', answer: { status: 200, data: 'ok' } } }),
    mend: calm,
    says: /curl --insecure https:\/\/pve1:8006/,
  },
  'RetriesExhausted, by Unreachable': {
    provoke: () => setAll('down'),
    mend: () => setAll('up'),
    says: /is the VPN up\?/,
  },
  // Report: Telmate/terraform-provider-proxmox#478
  // Report: bpg/terraform-provider-proxmox#1731
  'RetriesExhausted, by Unreachable, between the nodes': {
    provoke: () => answers('POST', '/upload$', { status: 596, message: 'certificate verify failed' }),
    mend: calm,
    says: /got no answer from node (pve\d): .*whatever certificates we trust\. .*`curl --insecure https:\/\/\1:8006`.*pvecm updatecerts/,
  },
  'RetriesExhausted, by Untrusted': {
    provoke: () => fault({ match: {}, effect: { kind: 'connection', code: 'ERR_CERT_PIN', sent: false } }),
    mend: calm,
    says: /pvenode cert info.*clusters\.lab\.endpoints, fingerprint/,
  },
}
let putBack = () => {}

describe('the hint of', () => {
  it.each(Object.entries(cases))(
    '%s, is all it takes',
    async (name, { options, provoke, mend, says, end = 'Ready', part = (hint) => hint, check }) => {
      for (const key of Object.keys(passwords)) delete passwords[key]
      lab = await openLab(options)
      lab.request('alpha')
      await provoke()
      const row = await failed(name.slice(0, name.indexOf(',')))
      expect(row.problem?.reason).toContain(/, by (\w+)/.exec(name)?.[1] ?? '')
      expect(hintOf(row)).toMatch(says)
      expect(hintOf(row), 'nothing of its own place is left open').not.toMatch(
        /<(uid|vmid|node|cluster|zone|image|storage|isoStorage|pool)>/,
      )
      follow(part(hintOf(row)))
      await mend?.(row)
      const healed = await redriven(row)
      expect(healed).toMatchObject({ phase: end })
      check?.()
    },
  )

  it.each([
    ['InvalidEvent', { name: 'a_b' }, { name: 'a-b' }, /egress dlq redrive <message id> --body/],
    [
      'GenerationReused',
      { spec: { size: { cores: 2 } } },
      { generation: 2, spec: { size: { cores: 2 } } },
      /publish it with generation 2/,
    ],
  ])('%s, is all its publisher needs', async (code, bad, good, says) => {
    lab = await openLab()
    lab.request('alpha', code === 'InvalidEvent' ? bad : {})
    await lab.run()
    if (code === 'GenerationReused') lab.request('alpha', bad)
    await lab.run()
    const [letter] = lab.queues.deadLetters
    expect(letter?.obituary.code).toBe(code)
    expect(letter?.obituary.problem.hint).toMatch(says)
    lab.request('alpha', good)
    await lab.run()
    expect(lab.row('alpha')).toMatchObject({ phase: 'Ready', name: 'name' in good ? 'a-b' : 'alpha' })
  })
})
