import { isDeepStrictEqual } from 'node:util'
import { tables as shapes, type TableShape } from '../../../local/resources.ts'
import { ofType, type Template } from '../template.ts'
import { writtenClaims } from '../written-claims.ts'
import type { Rule } from './rule.ts'

const tables = (template: Template) => ofType(template, 'AWS::DynamoDB::Table')

/** What runs on one machine and on AWS has the same keys and indexes, or the tests of the one would say nothing of the other. */
export const tablesAreThoseOfOneMachine: Rule = ({ Resources }) => {
  const named: Record<string, TableShape> = { ProxiesTable: shapes.proxies, ClaimsTable: shapes.claims }
  return Object.entries(named).flatMap(([name, shape]) => {
    const { Properties } = Resources[name] ?? {}
    if (!Properties) return [`there is no ${name}`]
    const found = []
    if (!isDeepStrictEqual(Properties.KeySchema, shape.keys)) found.push(`${name} has other keys`)
    if (!isDeepStrictEqual(Properties.AttributeDefinitions, shape.attributes))
      found.push(`${name} has other attributes`)
    if (!isDeepStrictEqual(Properties.GlobalSecondaryIndexes, shape.indexes))
      found.push(`${name} has other indexes`)
    const { AttributeName, Enabled } = Properties.TimeToLiveSpecification ?? {}
    if (AttributeName !== shape.ttlAttribute || Enabled !== true)
      found.push(`${name} does not expire by ${shape.ttlAttribute}`)
    return found
  })
}

const SAID = [
  'BillingMode',
  'DeletionProtectionEnabled',
  'PointInTimeRecoverySpecification',
  'SSESpecification',
  'TimeToLiveSpecification',
  'KeySchema',
  'AttributeDefinitions',
  'GlobalSecondaryIndexes',
]

/** A name would meet the table that the last stack left behind; a bound would throttle; a policy would let others in. */
export const tablesAreNothingBesides: Rule = (template) =>
  tables(template).flatMap(([name, { Properties }]) =>
    Object.keys(Properties)
      .filter((property) => !SAID.includes(property))
      .map((property) => `${name} has a ${property}, for which nobody gave a reason`),
  )

export const tablesArePaidByUse: Rule = (template) =>
  tables(template)
    .filter(([, { Properties }]) => Properties.BillingMode !== 'PAY_PER_REQUEST')
    .map(([name]) => `${name} is not on demand`)

export const tablesCanBeRestored: Rule = (template) =>
  tables(template)
    .filter(
      ([, { Properties }]) =>
        Properties.PointInTimeRecoverySpecification?.PointInTimeRecoveryEnabled !== true,
    )
    .map(([name]) => `${name} has no point-in-time recovery`)

/** As far back as AWS goes, which is what it does unless told otherwise. */
export const tablesCanBeRestoredFarBack: Rule = (template) =>
  tables(template)
    .filter(
      ([, { Properties }]) => (Properties.PointInTimeRecoverySpecification?.RecoveryPeriodInDays ?? 35) < 35,
    )
    .map(([name]) => `${name} can be restored for some days only`)

/** A claim that vanished by itself would give its VMID, its address or its place to another while its machine still is there. */
export const claimsNeverExpire = async (template: Template): Promise<string[]> => {
  const { claims, forgettable } = await writtenClaims()
  const expiring = template.Resources.ClaimsTable?.Properties.TimeToLiveSpecification?.AttributeName
  return [
    ...claims
      .filter((item) => expiring in item)
      .map(({ partition }) => `ClaimsTable lets claims expire by ${expiring}: ${partition}`),
    ...forgettable
      .filter((item) => !(expiring in item))
      .map(({ partition }) => `ClaimsTable keeps for ever what is to be forgotten: ${partition}`),
  ]
}

export const tablesAreEncrypted: Rule = (template) =>
  tables(template)
    .filter(([, { Properties }]) => Properties.SSESpecification?.SSEEnabled !== true)
    .map(([name]) => `${name} is not encrypted with a key of the account`)

/** Without its rows nobody knows which machines are ours. */
export const tablesOutliveTheStack: Rule = (template) =>
  tables(template).flatMap(([name, { Properties, DeletionPolicy, UpdateReplacePolicy }]) => {
    const found = []
    if (DeletionPolicy !== 'Retain' || UpdateReplacePolicy !== 'Retain')
      found.push(`${name} goes with the stack`)
    if (Properties.DeletionProtectionEnabled !== true) found.push(`${name} can be deleted by anyone who may`)
    return found
  })
