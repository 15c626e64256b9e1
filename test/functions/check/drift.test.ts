import { describe, expect, it } from 'vitest'
import { type Drift, judgeDrift } from '../../../functions/check/drift.ts'
import type { Sight } from '../../../functions/check/sight.ts'
import type { Config } from '../../../lib/config.ts'
import { aConfig } from '../../lib/a-config.ts'
import { aPlace, aRow } from '../../lib/a-row.ts'

const row = {
  ...aRow({ phase: 'Ready', step: undefined, address: '10.0.0.5', endpoint: 'http://10.0.0.5:3128' }),
  place: aPlace,
}
const running = { running: true, qmp: 'running' }
const vm: Sight & { kind: 'vm' } = { kind: 'vm', node: 'pve1', owner: 'ours', held: false, status: running }
const answers = { kind: 'answers', detail: 'status 200' } as const
const silence = { kind: 'silent', detail: 'ECONNREFUSED' } as const
const refuses = { kind: 'refuses', detail: 'status 403' } as const
const still = (qmp: string) => ({ ...vm, status: { running: false, qmp } })

const judge = (sight: Sight, check: Partial<Config['check']> = {}, silentBefore = 0): Drift =>
  judgeDrift(row, sight, {
    config: { deployment: 'test', check: { ...aConfig().check, ...check } },
    silentBefore,
  })

/** State, level, code and reaction in a word each. */
const short = ({ state, finding, reaction }: Drift) =>
  [state, finding?.level, finding?.code, reaction].filter((part) => part !== undefined).join(' ')

describe('the drift of a ready proxy', () => {
  it.each<[what: string, sight: Sight, verdict: string]>([
    ['that answers', { ...vm, probe: answers }, 'fine'],
    ['that answers where its guest says', { ...vm, probe: answers, addresses: ['10.0.0.5'] }, 'fine'],
    ['whose guest has more addresses', { ...vm, addresses: ['10.0.0.9', '10.0.0.5'] }, 'fine'],
    ['that nobody asks', vm, 'fine'],
    ['on a silent node', { kind: 'unknown', reason: 'timed out' }, 'unknown warning Unknown'],
    ['that nothing is left of', { kind: 'gone', instead: 'nothing' }, 'drifted warning Gone stop'],
    ['whose number a container has', { kind: 'gone', instead: 'a container' }, 'drifted warning Gone stop'],
    ['whose number another has', { kind: 'gone', instead: 'another’s VM' }, 'drifted warning Gone stop'],
    ['that may not be seen', { kind: 'hidden' }, 'drifted failure Hidden'],
    ['that is stopped', still('stopped'), 'drifted warning Stopped start'],
    ['that is paused', still('paused'), 'unknown warning Paused'],
    ['that is about to run', still('prelaunch'), 'unknown warning Paused'],
    ['whose disk fails', still('io-error'), 'drifted failure Broken'],
    ['whose guest panicked', still('guest-panicked'), 'drifted failure Broken'],
    ['without its mark', { ...vm, owner: 'unmarked', probe: answers }, 'drifted warning MarkLost start'],
    [
      'without its mark, stopped',
      { ...still('stopped'), owner: 'unmarked' },
      'drifted warning Stopped start',
    ],
    ['that may not be ours', { ...vm, owner: 'doubtful', probe: answers }, 'drifted failure MarkDoubtful'],
    [
      'that may not be ours, stopped',
      { ...still('stopped'), owner: 'doubtful' },
      'drifted failure MarkDoubtful',
    ],
    ['that is backed up', { ...vm, lock: 'backup', probe: silence }, 'unknown warning Locked'],
    ['that a backup stopped', { ...still('stopped'), lock: 'backup' }, 'unknown warning Locked'],
    ['that was hibernated', { ...still('stopped'), lock: 'suspended' }, 'drifted warning Stopped start'],
    [
      'at another address',
      { ...vm, probe: silence, addresses: ['10.0.0.9'] },
      'drifted warning AddressChanged start',
    ],
    [
      'at another address, its old one answering',
      { ...vm, probe: answers, addresses: ['10.0.0.9'] },
      'drifted warning AddressChanged start',
    ],
    ['without any address', { ...vm, probe: silence, addresses: [] }, 'drifted warning Silent'],
    ['that turns us away', { ...vm, probe: refuses }, 'drifted warning TurnedAway'],
    ['that does not answer', { ...vm, probe: silence }, 'drifted warning Silent'],
  ])('%s', (_, sight, verdict) => {
    expect(short(judge(sight))).toBe(verdict)
  })

  it.each<[what: string, sight: Sight, check: Partial<Config['check']>, before: number, verdict: string]>([
    ['stopped: replace', still('stopped'), { stopped: 'replace' }, 0, 'drifted warning Stopped stop'],
    ['stopped: report', still('stopped'), { stopped: 'report' }, 0, 'drifted warning Stopped'],
    ['stopped: replace, broken', still('io-error'), { stopped: 'replace' }, 0, 'drifted warning Broken stop'],
    ['a second silent round', { ...vm, probe: silence }, {}, 1, 'drifted warning Silent'],
    ['a third silent round', { ...vm, probe: silence }, {}, 2, 'drifted failure Silent'],
    [
      'silent: replace, too early',
      { ...vm, probe: silence },
      { silent: 'replace' },
      1,
      'drifted warning Silent',
    ],
    ['silent: replace', { ...vm, probe: silence }, { silent: 'replace' }, 2, 'drifted warning Silent stop'],
    ['silentRounds: 1', { ...vm, probe: silence }, { silentRounds: 1 }, 0, 'drifted failure Silent'],
  ])('by the policy of %s', (_, sight, check, before, verdict) => {
    expect(short(judge(sight, check, before))).toBe(verdict)
  })

  it('counts rounds without an answer, from the last answer on', () => {
    expect(judge({ ...vm, probe: silence }, {}, 4).silentRounds).toBe(5)
    expect(judge({ ...vm, probe: answers }, {}, 4).silentRounds).toBe(0)
    expect(judge({ ...vm, probe: refuses }, {}, 4).silentRounds).toBe(0)
    expect(judge({ kind: 'unknown', reason: 'timed out' }, {}, 4).silentRounds).toBeUndefined()
  })

  it.each<[what: string, sight: Sight & { kind: 'vm' }]>([
    ['stopped', still('stopped')],
    ['broken', still('io-error')],
    ['unmarked', { ...vm, owner: 'unmarked' }],
    ['moved', { ...vm, addresses: ['10.0.0.9'] }],
    ['silent', { ...vm, probe: silence }],
  ])('%s, and tagged egress-hold, is told and never acted upon', (_, sight) => {
    for (const policy of [{}, { stopped: 'replace', silent: 'replace' }] as const) {
      const held = judge({ ...sight, held: true }, policy, 9)
      expect(held.reaction).toBeUndefined()
      expect(held.finding).toMatchObject({ level: 'warning', code: 'Held' })
      expect(held.finding?.text).toContain('tagged egress-hold')
    }
  })

  it('is none of one that is held and well', () => {
    expect(short(judge({ ...vm, held: true, probe: answers }))).toBe('fine ok Held')
  })

  it('shows the line to restore of a mark that may be ours', () => {
    expect(judge({ ...vm, owner: 'doubtful' }).finding?.line).toContain(
      '{"egress":{"deployment":"test","uid":"a","generation":1,"vmid":5001,"specHash":"hash","seed":"local:iso/egress-test-a-g1.iso"}}',
    )
  })
})
