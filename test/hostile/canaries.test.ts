import { afterEach, describe, expect, it } from 'vitest'
import type { RawRequest } from '../../lib/proxmox/index.ts'
import { type Lab, openLab } from '../lab/lab.ts'
import {
  expectNoTrace,
  leftBy,
  PASSWORD,
  quoted,
  secretOf,
  secretSpec,
  styles,
  USER_DATA_LINE,
} from './canary.ts'

// Whatever stands between us and Proxmox quotes our own requests back at us, and then everything that a life leaves behind is
// searched for what is secret in them.

let lab: Lab
afterEach(() => lab?.close())

const calls: Record<string, RegExp> = {
  clone: /^POST \S+\/clone$/,
  upload: /^POST \S+\/upload$/,
  'the end of a task': /^GET \S+\/tasks\/[^/]+\/status$/,
  configure: /^PUT \S+\/config$/,
  config: /^GET \S+\/qemu\/5\d+\/config$/,
  start: /^POST \S+\/status\/start$/,
  status: /^GET \S+\/status\/current$/,
  agent: /^GET \S+\/agent\/network-get-interfaces$/,
  'whether a number is free': /^GET \S+\/cluster\/nextid/,
  nodes: /^GET \S+\/nodes$/,
  volumes: /^GET \S+\/storage\/[^/]+\/content/,
  destroy: /^DELETE \S+\/qemu\/\d+/,
  'the deletion of a seed': /^DELETE \S+\/content\//,
}
const names = Object.keys(styles)
const cases = [
  ...names.map((style) => ['upload', style]),
  // The others take turns.
  ...Object.keys(calls).map((call, index) => [call, names[index % names.length] ?? '']),
] as [string, string][]
/** Some calls are made for a day when they fail: what is told of the hundredth time was told of the first. */
const ENOUGH = 100

describe('of the token, the password and the publisher’s userData', () => {
  it.each(cases)(
    'nothing is left anywhere when %s is answered with what was sent, in %s',
    async (call, style) => {
      const seen: RawRequest[] = []
      let struck = 0
      lab = await openLab({
        nodes: 2,
        passwords: { pw: PASSWORD },
        interpose: ({ surroundings, exchange }) => ({
          surroundings,
          exchange: async (endpoint, request) => {
            seen.push(request)
            const line = `${request.method} ${request.path.replace('/api2/json', ' /').replace(' ', '')}`
            if (!calls[call]?.test(line)) return exchange(endpoint, request)
            struck += 1
            const reply = styles[style]?.(quoted(request))
            if (reply instanceof Error) throw reply
            if (!reply) throw new Error(`there is no style ${style}`)
            return reply
          },
        }),
      })
      lab.request('alpha', { spec: secretSpec })
      await lab.run(
        () => ['Ready', 'Failed'].includes(lab.row('alpha')?.phase ?? '') || lab.decisions.length > ENOUGH,
      )
      lab.remove('alpha')
      const before = lab.decisions.length
      await lab.run(() => lab.queues.size() === 0 || lab.decisions.length > before + ENOUGH)

      expect(struck).toBeGreaterThan(0)
      const left = {
        ...(await leftBy(lab)),
        paths: seen.map(({ path }) => path),
        forms: seen
          .filter(({ path }) => !path.endsWith('/upload'))
          .map(({ body }) => Buffer.from(body ?? []).toString()),
      }
      expectNoTrace(left, [secretOf(lab.world.tokens.egress), PASSWORD, USER_DATA_LINE])
    },
  )
})
