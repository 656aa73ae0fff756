internal import Platform
internal import Trebuchet

/// The identity of a reader where readers differ: equal for callers that may read the same documents under the same rules.
struct CollectionReader: Sendable, Hashable {
    private enum Group: Sendable, Hashable {
        case named(String)
        /// One principal with its roles and claims; nil for callers that are not signed in.
        case principal(id: ByteText?, roles: Set<String>, claims: [ByteText: ByteText])
    }

    private let group: Group
    /// The number of the rules.
    private let rules: Int

    /// Returns nil where all readers are alike.
    ///
    /// - Parameter number: the number of the rules.
    init?(_ principal: Principal?, in collection: String, _ rules: any CollectionRules, number: Int) {
        switch rules.readerGroup(for: principal, in: collection) {
        case .allCallers: return nil
        case .named(let name): group = .named(name)
        case .separate:
            // Rules may use any claim except the session, which differs between connections of a user and has no other meaning.
            let claims = (principal?.claims ?? [:]).filter { $0.key != "session" }
            group = .principal(
                id: principal.map { ByteText($0.id) }, roles: principal?.roles ?? [],
                claims: Dictionary(uniqueKeysWithValues: claims.map { (ByteText($0.key), ByteText($0.value)) }))
        }
        self.rules = number
    }
}
