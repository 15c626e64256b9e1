import { expect, test } from 'vitest'
import { parseUpid } from '../../../lib/proxmox/index.ts'

test.each([
  ['UPID:pve1:0000046A:0003E55F:6B0E270F:qmclone:9000:runner@pve!ctl:', 'qmclone', '9000', 'runner@pve!ctl'],
  ['UPID:pve1:00002CF1:0005A90B:6B0E2B94:imgcopy::life@pve!tok:', 'imgcopy', '', 'life@pve!tok'],
  ['UPID:pve1:00002D57:0005AD73A:6B0E2B9F:imgdel:101@local:root@pam:', 'imgdel', '101@local', 'root@pam'],
])('takes %s apart', (upid, type, id, user) => {
  expect(parseUpid(upid)).toMatchObject({ node: 'pve1', type, id, user })
})

test('reads when the task began', () => {
  const upid = 'UPID:pve1:0000046A:0003E55F:6B0E270F:qmclone:9000:runner@pve!ctl:'
  expect(parseUpid(upid)?.startedAtMs).toBe(1_796_089_615_000)
})

test.each([
  '',
  'UPID:pve1:',
  'UPID:pve1:0000046A:0003E55F:6B0E270F:qmclone:9000:runner@pve!ctl',
  'UPID:../x:0000046A:0003E55F:6B0E270F:a:b:c:',
])('knows that %j is none', (text) => {
  expect(parseUpid(text)).toBeUndefined()
})
