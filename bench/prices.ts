/**
 * List prices of us-east-1 in US dollars, without free tiers, as known on 2026-12-01. Written down from memory of the
 * pages named, and not fetched from them: look there before a budget depends on it.
 */
export const prices = {
  /** https://aws.amazon.com/lambda/pricing/ (Arm) */
  lambdaRequest: 0.2e-6,
  lambdaGbSecond: 13.3334e-6,
  /** https://aws.amazon.com/sqs/pricing/ (standard queues); a request is up to 64 KB. */
  sqsRequest: 0.4e-6,
  /** https://aws.amazon.com/dynamodb/pricing/on-demand/ */
  writeUnit: 0.625e-6,
  readUnit: 0.125e-6,
  tableGbMonth: 0.25,
  /** https://aws.amazon.com/sns/pricing/; deliveries to SQS are free. */
  snsPublish: 0.5e-6,
  /** https://aws.amazon.com/cloudwatch/pricing/ */
  logGb: 0.5,
  alarmMonth: 0.1,
  /** https://aws.amazon.com/vpn/pricing/ */
  vpnHour: 0.05,
  /** https://aws.amazon.com/privatelink/pricing/, per zone */
  endpointHour: 0.01,
} as const

export const HOURS_A_MONTH = 730
export const SECONDS_A_MONTH = HOURS_A_MONTH * 3600
