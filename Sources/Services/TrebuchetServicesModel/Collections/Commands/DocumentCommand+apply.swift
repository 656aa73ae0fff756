/// The context in which a command is executed.
package struct CommandContext {
    /// The caller's principal; nil when the caller is not signed in.
    package var creator: String?
    /// The caller's host.
    package var origin: UInt32?
    /// The number of the write.
    package var number: Int
    /// Milliseconds since 1970.
    package var time: Int
    /// The lifetime of documents that are created without one.
    package var lifetime: Duration?

    package init(creator: String? = nil, origin: UInt32? = nil, number: Int, time: Int, lifetime: Duration? = nil) {
        self.creator = creator
        self.origin = origin
        self.number = number
        self.time = time
        self.lifetime = lifetime
    }
}

extension DocumentCommand {
    /// Returns the document after the command: at the server, and where a client shows a pending write. Pure.
    package func perform(on document: Document?, _ context: CommandContext) throws(CollectionError) -> Document? {
        if case .create(let id, let fields, let duration) = self {
            guard document == nil else { throw .alreadyExists(id: id.text) }
            var created = Document(
                id: id, fields: fields.settingServerTime(context.time), creator: context.creator,
                created: context.number,
                revision: context.number, createdAt: context.time, updatedAt: context.time,
                expiresAt: try Self.expiration(duration ?? context.lifetime, context))
            created.origin = context.origin
            return created
        }
        guard var changed = document else {
            if case .delete = self { return nil }
            throw .notFound(id: id.text)
        }
        switch self {
        case .create, .check: break
        case .delete: return nil
        case .update(_, let fields): changed.set(fields.settingServerTime(context.time))
        case .merge(_, let fields): changed.merge(fields.settingServerTime(context.time))
        case .increment(_, let field, let amount): try changed.incrementField(amount, to: field)
        case .link(_, let field, let target, _): try changed.setLink(true, field, target)
        case .unlink(_, let field, let target): try changed.setLink(false, field, target)
        case .expire(_, let duration): changed.expiryMilliseconds = try Self.expiration(duration, context)
        }
        return changed
    }

    private static func expiration(_ duration: Duration?, _ context: CommandContext) throws(CollectionError) -> Int? {
        guard let duration else { return nil }
        guard duration > .zero, duration <= CollectionLimits.maximumLifetime else {
            throw .invalidDocument("the lifetime of a document must be more than 0 and at most 100 years")
        }
        return context.time
            + max(
                1,
                Int(duration.components.seconds) * 1_000 + Int(duration.components.attoseconds / 1_000_000_000_000_000))
    }
}

extension Document {
    /// Sets fields; null removes one. Other fields stay, so the last of two writes to one field wins.
    mutating func set(_ changes: JSONObject) { fields = fields.setting(changes) }

    /// Changes parts of fields (RFC 7396).
    mutating func merge(_ patch: JSONObject) { fields = fields.merging(patch) }

    mutating func incrementField(_ amount: JSONValue, to field: String) throws(CollectionError) {
        switch (fields[field] ?? .integer(0), amount) {
        case (.integer(let one), .integer(let other)):
            let (sum, isTooLarge) = one.addingReportingOverflow(other)
            guard !isTooLarge else { throw .numberOverflow(id: id.text, field: field.excerpt) }
            fields[field] = .integer(sum)
        case (.integer(let one), .number(let other)): try setSum(Double(one) + other, field)
        case (.number(let one), .integer(let other)): try setSum(one + Double(other), field)
        case (.number(let one), .number(let other)): try setSum(one + other, field)
        case (.integer, _), (.number, _): throw .invalidDocument("an increment must be a number")
        default: throw .notANumber(id: id.text, field: field.excerpt)
        }
    }

    private mutating func setSum(_ sum: Double, _ field: String) throws(CollectionError) {
        guard sum.isFinite else { throw .numberOverflow(id: id.text, field: field.excerpt) }
        fields[field] = JSONValue(sum)
    }

    /// Adds a value to the array in a field unless it is there, or removes it. Other values in the array stay, as text.
    mutating func setLink(_ isLinked: Bool, _ field: String, _ target: JSONValue) throws(CollectionError) {
        switch fields.settingLink(isLinked, target, in: field) {
        case .changed(let result): fields = result
        case .unchanged: break
        case .notAnArray: throw .notAnArray(id: id.text, field: field.excerpt)
        }
    }
}

extension String {
    /// Shortens a peer's text for an error.
    fileprivate var excerpt: String { String(decoding: utf8.prefix(64), as: UTF8.self) }
}
