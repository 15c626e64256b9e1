import { describe, expect, it } from 'vitest'
import { type Account, preflight } from '../../infra/preflight.ts'
import { aConfig, aDocument } from '../lib/a-config.ts'

const lab = aDocument().clusters.lab
const withToken = (token: unknown) => aConfig({ clusters: { lab: { ...lab, token } } })
const executions = { batches: 8, reserved: 2 }

const account = (types: Record<string, string>, concurrency = { limit: 1000, unreserved: 998 }): Account => ({
  parameterTypes: async (names) => new Map(Object.entries(types).filter(([name]) => names.includes(name))),
  concurrency: async () => concurrency,
})

describe('preflight', () => {
  it('finds nothing missing where tokens are stored and executions are left', async () => {
    expect(
      await preflight('prod', withToken({ ssm: '/t' }), executions, account({ '/t': 'SecureString' })),
    ).toEqual([])
  })

  it('wants one of two tokens only, as between rotations', async () => {
    const config = withToken([{ ssm: '/t' }, { ssm: '/next' }])
    expect(await preflight('prod', config, executions, account({ '/next': 'SecureString' }))).toEqual([])
  })

  it('tells how to store a token that is missing, and never takes it as an argument', async () => {
    const [line, ...more] = await preflight('prod', withToken({ ssm: '/t' }), executions, account({}))
    expect(line).toBe(
      'no token of cluster lab in parameter /t: store it with  npx egress token set --cluster lab --stage prod',
    )
    expect(more).toEqual([])
  })

  it('refuses a token that lies open', async () => {
    const found = await preflight('prod', withToken({ ssm: '/t' }), executions, account({ '/t': 'String' }))
    expect(found).toEqual([expect.stringContaining('parameter /t is a String')])
  })

  it('says when the account has too few executions to reserve any, as a new one', async () => {
    const few = account({ '/t': 'SecureString' }, { limit: 10, unreserved: 10 })
    const found = await preflight('prod', withToken({ ssm: '/t' }), executions, few)
    expect(found).toEqual([expect.stringMatching(/allows 10 executions.*L-B99A9384/)])
  })

  it('says when others have reserved what the queues may take', async () => {
    const few = account({ '/t': 'SecureString' }, { limit: 1000, unreserved: 7 })
    const found = await preflight('prod', withToken({ ssm: '/t' }), executions, few)
    expect(found).toEqual([
      expect.stringContaining('has 7 executions at once to give, the queues may take 8'),
    ])
  })

  it('says everything at once', async () => {
    const few = account({}, { limit: 10, unreserved: 10 })
    expect(await preflight('prod', withToken({ ssm: '/t' }), executions, few)).toHaveLength(2)
  })

  it('does not deploy the example', async () => {
    const found = await preflight('example', withToken({ ssm: '/t' }), executions, account({}))
    expect(found).toEqual([expect.stringContaining('is one to copy')])
  })
})
