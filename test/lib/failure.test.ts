import { describe, expect, expectTypeOf, it } from 'vitest'
import { asFailing, type Failing, Failure, FailureCode, retryWindowSeconds } from '../../lib/failure.ts'
import { errorClass, ProxmoxError, type ProxmoxErrorCode } from '../../lib/proxmox/index.ts'

// No object is typed to have every code of Proxmox: the table of classes is.
const proxmoxCodes = Object.keys(errorClass) as ProxmoxErrorCode[]
const proxmoxError = (code: ProxmoxErrorCode) =>
  new ProxmoxError('words', { code, call: 'POST /x', sent: 'maybe', ambiguous: true })

describe('failure codes', () => {
  it.each(proxmoxCodes)('pass %s of Proxmox through, under its own name and class', (code) => {
    const error = proxmoxError(code)
    expect(FailureCode.options).toContain(code)
    expect(asFailing(error)).toBe(error)
    expect(asFailing(error)).toMatchObject({ code, class: errorClass[code], ambiguous: true })
  })

  it('are types that agree', () => {
    expectTypeOf<ProxmoxErrorCode>().toExtend<FailureCode>()
    expectTypeOf<ProxmoxError>().toExtend<Failing>()
  })

  it('have no name twice', () => {
    expect(new Set(FailureCode.options).size).toBe(FailureCode.options.length)
  })
})

describe('anything thrown', () => {
  it('is what it is when it has a code of ours and a class', () => {
    const failure = new Failure('NoNode', 'none', { class: 'transient', hint: 'bring one back' })
    expect(asFailing(failure)).toBe(failure)
    expect(failure).toMatchObject({ name: 'Failure', hint: 'bring one back', message: 'none' })
  })

  it.each([
    ['an error of the language', new TypeError('x is not a function'), 'TypeError: x is not a function'],
    [
      'an error with a code of another house',
      Object.assign(new Error('no'), { code: 'ECONNREFUSED', class: 'x' }),
      'Error: no',
    ],
    ['an error with our code and no class', Object.assign(new Error('no'), { code: 'NoNode' }), 'Error: no'],
    ['a text', 'no', 'no'],
    ['nothing', undefined, 'undefined'],
  ])('becomes a transient Unexpected with its cause: %s', (_, thrown, message) => {
    const failing = asFailing(thrown)
    expect(failing).toMatchObject({ code: 'Unexpected', class: 'transient', message })
    expect(failing.cause).toBe(thrown)
  })
})

describe('retry windows', () => {
  it('are a day, but shorter where waiting does not help', () => {
    const hours = (code: FailureCode) => retryWindowSeconds(code, {}) / 3600
    expect(hours('Unreachable')).toBe(24)
    expect(hours('NoSpace')).toBe(1)
    expect(hours('Unauthorized')).toBe(0.25)
    expect(hours('Unknown')).toBeCloseTo(1 / 6)
    expect(hours('Unexpected')).toBeCloseTo(1 / 6)
  })

  it('can be configured, also to nothing', () => {
    expect(retryWindowSeconds('NoSpace', { NoSpace: 5 })).toBe(5)
    expect(retryWindowSeconds('NoSpace', { NoSpace: 0 })).toBe(0)
    expect(retryWindowSeconds('Locked', { NoSpace: 5 })).toBe(86_400)
  })
})
