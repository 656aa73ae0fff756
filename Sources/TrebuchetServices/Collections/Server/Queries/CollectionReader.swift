internal import Platform
internal import Trebuchet

/// Who reads a query, where readers are not alike: equal for those who may read the same, under the same rules.
struct CollectionReader: Sendable, Hashable {
    private enum Group: Sendable, Hashable {
        case named(String)
        /// One principal, with its roles and claims; nil for those who are not signed in.
        case principal(id: ByteText?, roles: Set<String>, claims: [ByteText: ByteText])
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
        case .alone:
            // Rules may look at any claim; but that of its session, which says nothing else, each connection of a user has.
            let claims = (principal?.claims ?? [:]).filter { $0.key != "session" }
            group = .principal(
                id: principal.map { ByteText($0.id) }, roles: principal?.roles ?? [],
                claims: Dictionary(uniqueKeysWithValues: claims.map { (ByteText($0.key), ByteText($0.value)) }))
        }
        self.rules = number
    }
}
