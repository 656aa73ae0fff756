internal import Trebuchet

/// Who reads a query, where readers are not alike: equal for those who may read the same, under the same rules.
struct CollectionReader: Sendable, Hashable {
    private enum Group: Sendable, Hashable {
        case named(String)
        /// One principal, with its roles; nil for those who are not signed in.
        case principal(id: ByteText?, roles: Set<String>)
    }

    private let group: Group
    /// Counts rules that were put in force.
    private let rules: Int

    /// Nil where all readers are alike.
    ///
    /// - Parameter number: of the rules.
    init?(_ principal: Principal?, in collection: String, _ rules: any CollectionRules, number: Int) {
        switch rules.readers(like: principal, in: collection) {
        case .everybody: return nil
        case .named(let name): group = .named(name)
        // Without its claims: those of another session of the same user are others.
        case .alone: group = .principal(id: principal.map { ByteText($0.id) }, roles: principal?.roles ?? [])
        }
        self.rules = number
    }
}
