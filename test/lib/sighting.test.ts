import { describe, expect, it } from 'vitest'
import { type Bearing, describe as describeVm, type Mark, markLine } from '../../lib/mark.ts'
import { vmName } from '../../lib/names.ts'
import { isProxmoxError, ProxmoxError } from '../../lib/proxmox/index.ts'
import type { Moment, Row } from '../../lib/record.ts'
import { type Eyes, type Look, see } from '../../lib/sighting.ts'
import { aPlace, aRow, calm, NOW } from './a-row.ts'

type Config = Bearing & { digest: string }

const mark: Mark = {
  deployment: 'test',
  uid: 'a',
  generation: 1,
  vmid: 5001,
  specHash: 'hash',
  seed: 'local:iso/egress-test-a-g1.iso',
}
const ours: Config = {
  name: vmName({ uid: 'a', name: 'alpha' }),
  description: describeVm(mark, 'alpha'),
  template: false,
  cdroms: [{ slot: 'ide2', volume: mark.seed }],
  digest: 'd1',
}
const stranger: Config = { name: 'web', template: false, cdroms: [], digest: 'd2' }
const placeholder: Config = { lock: 'clone', template: false, cdroms: [], digest: 'd3' }
const vm = (config: Partial<Config> = {}, base = ours): Look<Config> => ({
  kind: 'vm',
  node: 'pve2',
  config: { ...base, ...config },
})

type Task = { type: string; id: string }
type Scene = { look: Look<Config>; row?: Partial<Row>; moment?: Partial<Moment>; tasks?: Task[] }

async function sight({ look, row = {}, moment = {}, tasks = [] }: Scene) {
  const changed: unknown[] = []
  const eyes: Eyes<Config> = {
    look: async () => look,
    runningTasks: async ({ node }) => (node === aPlace.node ? tasks : []),
    configure: async (...change) => void changed.push(change),
  }
  const result = await see({ ...aRow(row), ...calm, ...moment }, eyes, 'test')
  return { result, changed }
}

/** A sighting in a word or two: what it is, or what is to be done about it. */
async function verdict(scene: Scene): Promise<string> {
  const { result } = await sight(scene)
  if (result.kind === 'gone') return result.heldByAnother ? 'gone, held by another' : 'gone'
  if (result.kind === 'ours') return 'ours'
  const { outcome } = result
  if (outcome.kind === 'fail') return `fail ${outcome.code}`
  if (outcome.kind !== 'wait') throw new Error(`a sighting is no reason to ${outcome.kind}`)
  return outcome.capSeconds === undefined ? 'wait' : `wait, at most ${outcome.capSeconds / 3600} h`
}

const unsettled = { settled: false }
const cloneTask: Task = { type: 'qmclone', id: '9000' }
const ended = (step: 'clone' | 'destroy', ok: boolean, code?: 'TaskLost' | 'NoSpace') => ({
  ended: { upid: 'UPID:a', step, at: NOW, ok, ...(code && { code }) },
})
const ofTheOldToken = {
  ended: {
    upid: 'UPID:a',
    step: 'clone' as const,
    at: NOW,
    ok: false,
    code: 'NoSuchTask' as const,
    unseen: true,
  },
}
const anyCallMayHaveRun = { unsettledUntil: NOW - 1 }

describe('a sighting', () => {
  it.each<[string, Scene, string]>([
    ['our VM', { look: vm() }, 'ours'],
    ['our VM while a call may still run', { look: vm(), moment: unsettled }, 'ours'],
    ['nothing, proven', { look: { kind: 'absent' } }, 'gone'],
    ['nothing, while a call may still run', { look: { kind: 'absent' }, moment: unsettled }, 'wait'],
    ['nothing that can be known', { look: { kind: 'unknown', reason: 'pve2 is silent' } }, 'wait'],
    ['a container', { look: { kind: 'container', node: 'pve1' } }, 'gone, held by another'],
    [
      'a container, while a call may still run',
      { look: { kind: 'container', node: 'pve1' }, moment: unsettled },
      'wait',
    ],
    ['a stranger', { look: vm({}, stranger) }, 'gone, held by another'],
    ['a stranger, while a call may still run', { look: vm({}, stranger), moment: unsettled }, 'wait'],
    [
      'a copy of our VM',
      { look: vm({ description: markLine({ ...mark, vmid: 9 }) }) },
      'gone, held by another',
    ],
    ['a VM with our name and no mark', { look: vm({ description: '', cdroms: [] }) }, 'fail MarkLost'],
    ['our VM in backup', { look: vm({ lock: 'backup' }) }, 'wait, at most 6 h'],
    ['our VM migrating', { look: vm({ lock: 'migrate' }) }, 'wait, at most 6 h'],
    // Report: prometheus-pve/prometheus-pve-exporter#303
    ['our VM under a lock of a kind to come', { look: vm({ lock: 'teleport' }) }, 'wait, at most 6 h'],
    ['our VM suspended, which may be stopped and destroyed', { look: vm({ lock: 'suspended' }) }, 'ours'],
  ])('of %s', async (_, scene, expected) => {
    expect(await verdict(scene)).toBe(expected)
  })

  it('of a row without a place is of nothing', async () => {
    const look: Look<Config> = { kind: 'absent' }
    expect(await verdict({ look, row: { place: undefined } })).toBe('gone')
    expect(await verdict({ look, row: { place: undefined }, moment: unsettled })).toBe('wait')
  })

  it('of our VM says where it stands now', async () => {
    const { result } = await sight({ look: vm() })
    expect(result).toMatchObject({ kind: 'ours', vm: { node: 'pve2', vmid: 5001 }, mark })
  })
})

describe('a sighting of a VM in the making or unmaking', () => {
  const locks = ['clone', 'create', 'destroyed']

  it.each<[string, Partial<Scene>, string]>([
    // Report: Telmate/terraform-provider-proxmox#173
    ['a clone of the template at work', { tasks: [cloneTask] }, 'wait'],
    ['a task on the VM itself at work', { tasks: [{ type: 'qmdestroy', id: '5001' }] }, 'wait'],
    ['a call that may still run', { moment: unsettled }, 'wait'],
    ['nobody at work, and our clone seen whole before', { row: { cloned: true } }, 'fail StuckLock'],
    ['nobody at work, and our clone killed', { row: ended('clone', false, 'TaskLost') }, 'fail StuckLock'],
    [
      'nobody to be seen at work, of a token that was replaced',
      { row: { cloned: true, ...anyCallMayHaveRun, ...ofTheOldToken } },
      'wait, at most 6 h',
    ],
    ['nobody at work, and a call of ours once unanswered', { row: anyCallMayHaveRun }, 'fail StuckLock'],
    [
      'nobody at work, and a clone of ours that failed and cleaned up',
      { row: ended('clone', false, 'NoSpace') },
      'wait, at most 6 h',
    ],
    ['nobody at work, and never a call of ours', {}, 'wait, at most 6 h'],
    [
      'a clone of another template at work',
      { row: { cloned: true }, tasks: [{ type: 'qmclone', id: '9009' }] },
      'fail StuckLock',
    ],
    [
      'another’s task on the template that is no clone',
      { row: { cloned: true }, tasks: [{ type: 'vzdump', id: '9000' }] },
      'fail StuckLock',
    ],
  ])('with %s', async (_, scene, expected) => {
    expect(await verdict({ look: vm({}, placeholder), ...scene })).toBe(expected)
    for (const lock of locks) expect(await verdict({ look: vm({ lock }), ...scene })).toBe(expected)
  })

  it('tells a person how to end a stuck lock', async () => {
    const { result } = await sight({ look: vm({ lock: 'clone' }), row: { cloned: true } })
    expect(result).toMatchObject({
      outcome: {
        reason: 'VM 5001 on pve2 was left half made (lock clone) and no task is at work on it',
        hint: expect.stringContaining(
          '`qm unlock 5001 && qm destroy 5001 --purge --destroy-unreferenced-disks 1`',
        ),
      },
    })
  })
})

describe('a sighting of what our token may not see', () => {
  const hidden: Look<Config> = { kind: 'hidden' }

  it.each<[string, Partial<Scene>, string]>([
    ['while a call may still run', { moment: unsettled }, 'wait'],
    ['while a clone is at work', { tasks: [cloneTask] }, 'wait'],
    [
      'within a minute of the end of a task',
      { row: { cloned: true }, moment: { endedSecondsAgo: 59 } },
      'wait',
    ],
    [
      'after our destroy',
      { row: { cloned: true, ...ended('destroy', true) }, moment: { endedSecondsAgo: 61 } },
      'gone, held by another',
    ],
    [
      'after our destroy failed',
      { row: { cloned: true, ...ended('destroy', false, 'NoSpace') }, moment: { endedSecondsAgo: 61 } },
      'fail Forbidden',
    ],
    ['after it was seen whole', { row: { cloned: true } }, 'fail Forbidden'],
    [
      'after our clone went well',
      { row: ended('clone', true), moment: { endedSecondsAgo: 61 } },
      'fail Forbidden',
    ],
    [
      'after our clone was killed',
      { row: ended('clone', false, 'TaskLost'), moment: { endedSecondsAgo: 61 } },
      'fail StuckLock',
    ],
    ['after a call of ours was never answered', { row: anyCallMayHaveRun }, 'fail StuckLock'],
    ['after our clone went out of sight', { row: ofTheOldToken }, 'wait, at most 6 h'],
    [
      'after our destroy went out of sight',
      { row: { cloned: true, ended: { ...ofTheOldToken.ended, step: 'destroy' } } },
      'wait, at most 6 h',
    ],
    ['before any call of ours', {}, 'gone, held by another'],
  ])('%s', async (_, scene, expected) => {
    expect(await verdict({ look: hidden, ...scene })).toBe(expected)
  })
})

describe('a mark that was edited away', () => {
  it('is written again below the notes, against the configuration that was seen', async () => {
    const { result, changed } = await sight({ look: vm({ description: 'Anna’s machine\n' }) })
    expect(changed).toEqual([
      [
        { node: 'pve2', vmid: 5001 },
        { set: { description: `Anna’s machine\n\n${markLine(mark)}` }, digest: 'd1' },
      ],
    ])
    expect(result).toMatchObject({ kind: 'unclear', outcome: { kind: 'wait', delaySeconds: 0 } })
  })

  it('is written alone where the notes were emptied', async () => {
    const { description: _, ...bare } = ours
    const { changed } = await sight({ look: { kind: 'vm', node: 'pve2', config: bare } })
    expect(changed).toMatchObject([[{}, { set: { description: markLine(mark) } }]])
  })

  it.each(['clone', 'backup'])('waits for a lock (%s) to go first', async (lock) => {
    const { result, changed } = await sight({ look: vm({ description: '', lock }), tasks: [cloneTask] })
    expect(result).toMatchObject({ kind: 'unclear', outcome: { kind: 'wait' } })
    expect(changed).toEqual([])
  })

  it('is left to a person where name and seed do not both say it is ours, with the line to restore', async () => {
    const { result, changed } = await sight({ look: vm({ description: '', cdroms: [] }) })
    expect(result).toMatchObject({
      outcome: { code: 'MarkLost', hint: expect.stringContaining(markLine(mark)) },
    })
    expect(changed).toEqual([])
  })

  it('is not written over a change that came first', async () => {
    const late = new ProxmoxError('changed', {
      code: 'DigestMismatch',
      call: 'PUT',
      sent: 'yes',
      ambiguous: false,
    })
    const eyes: Eyes<Config> = {
      look: async () => vm({ description: '' }),
      runningTasks: async () => [],
      configure: () => Promise.reject(late),
    }
    const thrown: unknown = await see({ ...aRow(), ...calm }, eyes, 'test').catch((error: unknown) => error)
    expect(isProxmoxError(thrown, 'DigestMismatch')).toBe(true)
  })
})
