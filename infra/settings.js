/**
 * What serverless.yml reads as `custom.settings`. JavaScript because the deployment tool loads nothing else; all there is to
 * it is in settings.ts.
 */
export const settings = async ({ resolveVariable }) => {
  const { readSettings } = await import('./settings.ts')
  return readSettings(process.cwd(), await resolveVariable('sls:stage'))
}
