/// The evaluation of a list's conditions for one document. It is done in several parts when it takes longer than a time slice.
struct ConditionEvaluation {
    let row: DocumentRow
    /// The condition that is evaluated next, and its place in the groups of an `any`.
    private var condition = 0
    private var group = 0
    private var member = 0

    init(_ row: DocumentRow) { self.row = row }

    /// Evaluates conditions until the result is known or the time is up, but at least a part of one.
    ///
    /// - Parameters:
    ///   - conditions: the same ones in each call.
    ///   - cache: the cache for the document.
    /// - Returns: whether all conditions hold; nil when the evaluation must be resumed.
    mutating func resume(
        _ conditions: [QueryCondition], _ cache: inout ConditionCache, _ slice: inout ScanSlice
    ) -> Bool? {
        while condition < conditions.count {
            guard case .any(let groups) = conditions[condition].kind else {
                guard let isMatch = conditions[condition].matches(row.document, &cache, &slice) else { return nil }
                guard isMatch else { return false }
                condition += 1
                if condition < conditions.count, slice.isOver(after: row) { return nil }
                continue
            }
            guard group < groups.count else { return false }
            if member == groups[group].count {
                (condition, group, member) = (condition + 1, 0, 0)
                continue
            }
            guard let isMatch = groups[group][member].matches(row.document, &cache, &slice) else { return nil }
            if isMatch {
                member += 1
            } else {
                (group, member) = (group + 1, 0)
            }
            if slice.isOver(after: row) { return nil }
        }
        return true
    }
}
