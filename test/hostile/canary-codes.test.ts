import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { FailureCode } from '../../lib/failure.ts'
import {
  errorClass,
  type ProxmoxErrorCode,
  type RawAnswer,
  type RawRequest,
} from '../../lib/proxmox/index.ts'
import { atStep, type Lab, type LabOptions, openLab } from '../lab/lab.ts'
import {
  answer,
  expectNoTrace,
  leftBy,
  PASSWORD,
  quoted,
  secretOf,
  secretSpec,
  USER_DATA_LINE,
} from './canary.ts'

// For each code there is, a life that meets it, with secrets in its request and everything quoted back that is refused.

let lab: Lab
afterEach(() => lab?.close())

type Life = {
  options?: LabOptions
  /** What is done to it, once its request was sent. */
  provoke?(): unknown
  /** So many decisions it takes, where that is more than for others. */
  enough?: number
  /** Says something else than the cluster to a call. */
  answers?(request: RawRequest): RawAnswer | Error | undefined
}

const failing = (code: string, sent: boolean) => (request: RawRequest) =>
  Object.assign(new Error(`failed at ${quoted(request)}`), { code, sent })
const only =
  (call: RegExp, reply: (request: RawRequest) => RawAnswer | Error) =>
  (request: RawRequest): RawAnswer | Error | undefined =>
    call.test(`${request.method} ${request.path}`) ? reply(request) : undefined
const refusing = (status: number, words: string) => (request: RawRequest) =>
  answer(status, 'x', { data: null, message: words, errors: { quoted: quoted(request) } })

/** The task that takes an upload in. */
const END_OF_UPLOAD = /^GET \S+\/tasks\/[^/]*imgcopy[^/]*\/status$/
const ended = (exitstatus: string) =>
  only(END_OF_UPLOAD, (request) =>
    answer(200, 'OK', { data: { status: 'stopped', exitstatus, quoted: quoted(request) } }),
  )

const onItsNode = (...argv: string[]) => {
  const vm = lab.sim.vms().find(({ template }) => !template)
  expect(
    lab.sim.root(
      vm?.node ?? '',
      argv.map((word) => (word === 'VMID' ? String(vm?.vmid) : word)),
    ),
  ).toMatchObject({
    exitCode: 0,
  })
}
const passwords = { pw: PASSWORD }

const lives: Partial<Record<FailureCode, Life>> = {
  InvalidEvent: { provoke: () => lab.request('alpha', { name: 'a_b', spec: { ...secretSpec, cores: 1 } }) },
  GenerationReused: {
    async provoke() {
      await lab.run(() => lab.row('alpha')?.phase === 'Ready')
      lab.request('alpha', { spec: { ...secretSpec, size: { cores: 2 } } })
    },
  },
  RowUnreadable: {
    async provoke() {
      await atStep(lab, 'alpha', 'seed')
      const item = lab.ledger.items().find(({ uid }) => uid === 'alpha')
      // A newer version's.
      lab.ledger.put({ ...item, step: 'polish' } as never)
    },
  },
  AddressTaken: {
    enough: 400,
    async provoke() {
      await atStep(lab, 'alpha', 'address')
      await lab.claims.takeAddress('lab', '127.9.9.9', 'beta')
    },
    answers: only(/network-get-interfaces$/, () => {
      const told = [{ 'ip-address': '127.9.9.9', 'ip-address-type': 'ipv4', prefix: 8 }]
      const result = [{ name: PASSWORD, 'hardware-address': lab.row('alpha')?.mac, 'ip-addresses': told }]
      return answer(200, 'OK', { data: { result } })
    }),
  },
  AgentNeverUp: { provoke: () => void lab.sim.faults.add({ match: {}, effect: { kind: 'agentHangs' } }) },
  Crashing: {
    async provoke() {
      await atStep(lab, 'alpha', 'seed')
      for (let death = 0; death <= 10; death++) {
        await lab.ledger.take('alpha', { kind: 'event' })
        await lab.clock.advance(300_000)
      }
    },
  },
  MarkLost: {
    async provoke() {
      await atStep(lab, 'alpha', 'configure')
      onItsNode('qm', 'set', 'VMID', '--description', `mine ${PASSWORD}`)
      await lab.run()
      onItsNode('qm', 'set', 'VMID', '--description', 'mine')
    },
  },
  Misconfigured: {
    async provoke() {
      await atStep(lab, 'alpha', 'reserve')
      delete lab.config.zones['lab-1']
    },
  },
  NoNode: {
    options: { config: { zones: { 'lab-1': { cluster: 'lab', nodes: ['pve2'] } } } },
    async provoke() {
      lab.sim.setNode('pve2', 'unreachable')
      await lab.clock.advance(60_000)
    },
  },
  PasswordMissing: { options: { passwords: { other: PASSWORD } } },
  ProbeRefused: {
    options: {
      passwords,
      config: { verify: { probe: 'http', probeUrl: 'http://page.test/', probeFrom: [] } },
    },
  },
  ProxyNeverAnswered: {
    options: {
      interpose: ({ surroundings, exchange }) => {
        const http = async () => ({ kind: 'silent' as const, detail: 'ECONNREFUSED' })
        return { exchange, surroundings: { ...surroundings, probe: { ...surroundings.probe, http } } }
      },
    },
  },
  RangeExhausted: { options: { cluster: { vmids: { from: 9001, to: 9001 } } } },
  RetriesExhausted: { answers: only(/^POST \S+\/upload$/, refusing(500, 'no bananas left')) },
  SeedRefused: { options: { passwords: { pw: `${PASSWORD}: "` } } },
  StepTimedOut: { answers: ended('interrupted by signal') },
  StuckLock: {
    options: { cluster: { clone: 'full' } },
    async provoke() {
      await lab.run(() => lab.row('alpha')?.task?.step === 'clone')
      await lab.clock.advance(100)
      lab.sim.killTask(lab.row('alpha')?.task?.upid ?? '', 'KILL')
    },
  },
  UserDataLost: {
    options: {
      interpose: ({ surroundings, exchange }) => {
        const userData = { ...surroundings.userData, get: async () => undefined }
        return { exchange, surroundings: { ...surroundings, userData } }
      },
    },
  },
  VmBroken: {
    async provoke() {
      await atStep(lab, 'alpha', 'start')
      onItsNode('qm', 'start', 'VMID')
      await lab.clock.advance(10_000)
      lab.sim.setQemu(lab.row('alpha')?.place?.vmid ?? 0, 'io-error')
    },
  },
  VmGone: {
    async provoke() {
      for (let time = 0; time < 4; time++) {
        await atStep(lab, 'alpha', 'configure')
        onItsNode('qm', 'destroy', 'VMID', '--purge', '1')
        await lab.clock.advance(10_000)
        await lab.run(() => lab.row('alpha')?.step !== 'configure')
      }
    },
  },
  Aborted: { answers: only(/^POST \S+\/upload$/, failing('ABORTED', true)) },
  Untrusted: { answers: only(/^POST \S+\/upload$/, failing('ERR_CERT_PIN', false)) },
  Unexpected: {
    answers: only(/^POST \S+\/upload$/, (request) => answer(200, 'OK', { data: { [quoted(request)]: 1 } })),
  },
  AgentError: {
    answers: only(/network-get-interfaces$/, (request) =>
      answer(200, 'OK', {
        data: { result: { error: { class: 'GenericError', desc: quoted(request) + PASSWORD } } },
      }),
    ),
  },
  VolumeExists: {
    answers: only(/^POST \S+\/clone$/, (request) =>
      answer(500, 'x', { message: `disk image '/x/vm-5000-disk-0.qcow2' already exists ${quoted(request)}` }),
    ),
  },
  TaskLost: { answers: ended('unexpected status') },
  Interrupted: { answers: ended('interrupted by signal') },
  Unknown: {
    answers: only(/^POST \S+\/upload$/, (request) =>
      answer(500, 'x', { message: `no bananas: ${quoted(request)}` }),
    ),
  },
  AgentOff: {
    async provoke() {
      await atStep(lab, 'alpha', 'address')
      onItsNode('qm', 'set', 'VMID', '--delete', 'agent')
    },
  },
}

/** The other codes are read out of Proxmox's words, as they were recorded: of an answer or of the end of a task. */
const recorded = readFileSync(new URL('../fixtures/words.tsv', import.meta.url), 'utf8')
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'))

function lifeOf(code: FailureCode): Life | undefined {
  const own = lives[code]
  if (own) return own
  const [, status = '', , words = '', errors = ''] = recorded.find(([name]) => name === code) ?? []
  if (words === '') return undefined
  if (status === 'task')
    return {
      answers: only(END_OF_UPLOAD, (request) =>
        answer(200, 'OK', { data: { status: 'stopped', exitstatus: words, quoted: quoted(request) } }),
      ),
    }
  return {
    answers: only(/^POST \S+\/upload$/, (request) =>
      answer(Number(status), words, {
        data: null,
        message: words,
        errors: { ...(errors === '' ? {} : JSON.parse(errors)), quoted: quoted(request) },
      }),
    ),
  }
}

const deadlineSeconds = { seed: 60, address: 60, verify: 60 }
/** Some calls are made for a day when they fail: what is told of the hundredth time was told of the first. */
const ENOUGH = 100

/** Of rows that nobody can read, too. */
const rowsOf = ({ ledger }: Lab) =>
  ledger.items() as { uid: string; phase?: string; problem?: { code: string }; ended?: { code?: string } }[]
const phaseOf = (of: Lab) => rowsOf(of).find(({ uid }) => uid === 'alpha')?.phase ?? ''

/** All codes that were met, whoever noted them. */
const met = (of: Lab): string[] => [
  ...rowsOf(of).flatMap(({ problem, ended: task }) => [problem?.code ?? [], task?.code ?? []].flat()),
  ...of.queues.deadLetters.map(({ obituary }) => obituary.code),
  ...of.calls.flatMap(({ code }) => code ?? []),
  ...of.decisions.flatMap(({ code }) => code ?? []),
  // What a guest says is waited out, without a code.
  ...of.decisions.flatMap(({ reason = '' }) => (reason.includes('the agent says: ') ? ['AgentError'] : [])),
]

describe('a life that meets', () => {
  it.each(FailureCode.options)('%s leaves no secret anywhere', async (code) => {
    const life = lifeOf(code)
    if (!life) throw new Error(`no life meets ${code}: write one`)
    const { provoke, answers, enough = ENOUGH } = life
    const options: LabOptions = { passwords, ...life.options }
    lab = await openLab({
      nodes: 2,
      ...options,
      // What passes is given up soon.
      config: {
        timings: { maxClockSkewSeconds: 0, retryWindowSeconds: { [code]: 60 }, deadlineSeconds },
        ...options.config,
      },
      interpose: (outside) => {
        const { surroundings, exchange } = options.interpose?.(outside) ?? outside
        return {
          surroundings,
          async exchange(endpoint, request) {
            const reply = answers?.(request)
            if (reply instanceof Error) throw reply
            return reply ?? exchange(endpoint, request)
          },
        }
      },
    })
    const codes = new Set<string>()
    const until = (done: () => boolean) =>
      lab.run(() => {
        for (const one of met(lab)) codes.add(one)
        return done() || lab.decisions.length > enough
      })
    lab.request('alpha', { spec: secretSpec })
    await provoke?.()
    await until(() => ['Ready', 'Failed'].includes(phaseOf(lab)))
    await until(() => lab.queues.size() === 0 || codes.has(code))
    expect([...codes]).toContain(code)
    expectNoTrace(await leftBy(lab), [secretOf(lab.world.tokens.egress), PASSWORD, USER_DATA_LINE])
  })

  it('permanent codes of Proxmox, each of them', () => {
    const permanent = (Object.keys(errorClass) as ProxmoxErrorCode[]).filter(
      (code) => errorClass[code] === 'permanent',
    )
    expect(permanent.filter((code) => !lifeOf(code))).toEqual([])
  })
})
