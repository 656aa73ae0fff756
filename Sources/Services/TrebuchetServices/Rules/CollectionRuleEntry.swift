internal import Bytes
internal import Platform
internal import Trebuchet

/// An entry of a rules file for the collections whose names match a pattern. Missing members do not override less precise
/// entries.
struct CollectionRuleEntry: Sendable {
    /// The authorized roles, and the member that defines them: `collections.todos.update`.
    struct Permission: Sendable {
        let roles: RoleSet
        let rule: String
    }

    let pattern: NamePattern
    var permissions: [CollectionAction: Permission] = [:]
    /// The field rules, sorted by name.
    var fields: [FieldRule]?
    /// The member `collections.todos.otherFields` when it is false, else nil.
    var closedBy: String?
    var allowsOtherFields: Bool?
    var documents: Int?
    var bytes: Int?
    var documentBytes: Int?
    var writesPerSecond: Double?
    var writesAtOnce: Int?

    init(_ pattern: NamePattern) { self.pattern = pattern }

    /// Returns this entry, with members of `other` where this one has none.
    func over(_ other: CollectionRuleEntry) -> CollectionRuleEntry {
        var both = self
        both.permissions.merge(other.permissions) { own, _ in own }
        both.fields = fields ?? other.fields
        if allowsOtherFields == nil {
            (both.allowsOtherFields, both.closedBy) = (other.allowsOtherFields, other.closedBy)
        }
        both.documents = documents ?? other.documents
        both.bytes = bytes ?? other.bytes
        both.documentBytes = documentBytes ?? other.documentBytes
        if writesPerSecond == nil, writesAtOnce == nil {
            (both.writesPerSecond, both.writesAtOnce) = (other.writesPerSecond, other.writesAtOnce)
        }
        return both
    }

    // MARK: Decisions

    func admits(_ principal: Principal?, _ action: CollectionAction, _ document: Document) -> Bool {
        permissions[action]?.roles.admits(principal, document) == true
    }

    func check(_ principal: Principal?, _ change: DocumentChangeRequest) throws(CollectionError) {
        guard let permission = permissions[change.action], permission.roles.admits(principal, change.document) else {
            let rule = permissions[change.action].map { "only: \($0.roles.text) (\($0.rule))" }
            throw change.forbidden(rule ?? "nobody")
        }
        guard let after = change.after else { return }
        for field in fields ?? [] { try field.check(principal, change) }
        guard let closedBy, allowsOtherFields == false else { return }
        let before = change.before
        let other = after.fields.names.filter { name in
            !name.isSameBytes(as: "id") && before?.fields[name] != after.fields[name]
                && fields?.contains { $0.name.isSameBytes(as: name) } != true
        }
        if let first = other.min(by: { $0.precedesInBytes($1) }) {
            throw .invalidDocument("field '\(first.prefix(bytes: 64))' is not allowed (\(closedBy))")
        }
    }

    func limits(_ defaults: CollectionLimits) -> CollectionLimits {
        var limits = defaults
        limits.documentsPerCollection = documents ?? limits.documentsPerCollection
        limits.collectionBytes = bytes ?? limits.collectionBytes
        limits.documentBytes = documentBytes ?? limits.documentBytes
        if writesPerSecond != nil || writesAtOnce != nil {
            let rate = writesPerSecond ?? limits.writesPerConnection.callsPerSecond
            limits.writesPerConnectionAndCollection = RateLimit(
                callsPerSecond: rate, burst: writesAtOnce ?? max(1, Int(min(rate * 5, 1e9))))
        }
        return limits
    }

    func readers(_ principal: Principal?) -> ReaderGroup {
        guard let roles = permissions[.read]?.roles else { return .named("nobody") }
        if roles.admitsAllCallers { return .allCallers }
        if roles.admits(principal) { return .named("all") }
        guard roles.dependsOnDocument else { return .named("nobody") }
        // Callers that are not signed in see at most documents without a creator.
        return principal == nil ? .named("not signed in") : .separate
    }
}
