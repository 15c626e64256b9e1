import { afterEach, describe, expect, it } from 'vitest'
import { type GcLab, openGcLab } from '../../lab/gc-lab.ts'
import { type LabOptions, settled } from '../../lab/lab.ts'

let lab: GcLab
const open = async (options: LabOptions = {}) => {
  lab = await openGcLab(options)
}
afterEach(() => lab?.close())

describe('gc', () => {
  it('finds nothing where all is well', async () => {
    await open()
    lab.request('alpha')
    await settled(lab, 'alpha')
    const report = await lab.gc()
    expect(report).toMatchObject({ actions: [], noted: [], warnings: [], skipped: [], heldBack: 0 })
    console.log(JSON.stringify(report.looked))
  })
  it('deletes an orphan', async () => {
    await open()
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.ledger.drop('alpha')
    console.log(JSON.stringify(await lab.gc(), null, 1))
    await lab.grace()
    console.log(JSON.stringify(await lab.gc(), null, 1))
    await lab.run()
    console.log(lab.leftOvers(), lab.claims.all(), lab.ledger.rows())
    await lab.grace()
    console.log(JSON.stringify(await lab.gc(), null, 1))
    console.log(lab.leftOvers(), lab.claims.all(), lab.claims.suspects())
  })
})
