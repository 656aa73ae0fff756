/// Who keeps a state beyond its process. In the actor's isolation.
protocol StateKeeper: AnyObject {
    /// The state has a new version.
    func didChange()
    /// Runs `update`, which shows the versions up to now, when they are kept.
    ///
    /// - Parameter isWanted: whether anybody would still see it; streams may come and go meanwhile.
    func show(while isWanted: @escaping () -> Bool, _ update: @escaping () -> Void)
}
