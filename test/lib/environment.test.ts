import { describe, expect, it } from 'vitest'
import { readEnvironment } from '../../lib/environment.ts'

const whole = {
  EGRESS_CONFIG: '/etc/egress.yml',
  EGRESS_PROXIES_TABLE: 'proxies',
  EGRESS_CLAIMS_TABLE: 'claims',
  EGRESS_CREATE_QUEUE_URL: 'https://sqs.example/1/create',
  EGRESS_DELETE_QUEUE_URL: 'https://sqs.example/1/delete',
  EGRESS_CREATE_DLQ_URL: 'https://sqs.example/1/create-dlq',
  EGRESS_DELETE_DLQ_URL: 'https://sqs.example/1/delete-dlq',
  EGRESS_TOPIC_ARN: 'arn:aws:sns:eu-central-1:1:outcomes',
}

describe('environment', () => {
  it('is read, other variables left alone, and logs at info unless told otherwise', () => {
    expect(readEnvironment({ ...whole, PATH: '/bin' })).toEqual({ ...whole, EGRESS_LOG_LEVEL: 'info' })
    expect(readEnvironment({ ...whole, EGRESS_LOG_LEVEL: 'debug' }).EGRESS_LOG_LEVEL).toBe('debug')
  })

  it('is refused with every wrong variable named, and no value', () => {
    const canary = 'hunter2'
    const wrong = {
      ...whole,
      EGRESS_CONFIG: '',
      EGRESS_CREATE_QUEUE_URL: canary,
      EGRESS_TOPIC_ARN: canary,
      EGRESS_CLAIMS_TABLE: undefined,
      EGRESS_LOG_LEVEL: canary,
    }
    expect(() => readEnvironment(wrong)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(canary) }),
    )
    for (const name of ['CONFIG', 'CLAIMS_TABLE', 'CREATE_QUEUE_URL', 'TOPIC_ARN', 'LOG_LEVEL']) {
      expect(() => readEnvironment(wrong)).toThrow(`EGRESS_${name}: wanted `)
    }
    expect(() => readEnvironment(wrong)).not.toThrow('EGRESS_DELETE_DLQ_URL')
  })
})
