/// Compares the values that one side writes with those that the other side reads.
struct TypeComparison {
    /// A program, or the store, with the definitions of its types.
    struct Side {
        /// The plural name, such as `new servers`.
        let name: String
        /// The name of its values, such as `values of new servers`.
        let values: String
        private let types: [String: SchemaDocument.Definition]

        init(_ name: String, values: String? = nil, _ document: SchemaDocument) {
            self.name = name
            self.values = values ?? "values of \(name)"
            types = Dictionary(document.types.map { ($0.name, $0) }) { first, _ in first }
        }

        /// Returns the type without the names that have no JSON form: a raw value in place of its struct.
        func resolved(_ type: SchemaType) -> SchemaType {
            guard case .named(let name, let arguments) = type, let definition = types[name] else { return type }
            switch definition.form {
            case .id(let raw): return resolved(raw.replacing(bindings(definition, arguments)))
            case .custom(let text): return .typeScript(text)
            case .structure, .union, .rawValues: return type
            }
        }

        /// Returns the definition of a type, with its generic arguments in place; nil for other types.
        func definition(_ type: SchemaType) -> (
            swiftName: String, form: SchemaDocument.Form, bindings: [String: SchemaType]
        )? {
            guard case .named(let name, let arguments) = type, let definition = types[name] else { return nil }
            return (definition.swiftName, definition.form, bindings(definition, arguments))
        }

        private func bindings(
            _ definition: SchemaDocument.Definition, _ arguments: [SchemaType]
        ) -> [String: SchemaType] {
            Dictionary(zip(definition.parameters, arguments)) { first, _ in first }
        }
    }

    /// A difference that the reader does not tolerate.
    struct Finding {
        /// The type and its member or case, or the member of an actor.
        let subject: String
        let text: String
    }

    private struct Pair: Hashable {
        let written: SchemaType
        let read: SchemaType
        let fills: Bool
    }

    private let writer: Side
    private let reader: Side
    /// True if the reader writes the value again without the members that it does not know.
    private let dropsUnknownMembers: Bool
    private var compared: Set<Pair> = []
    private var found: [Finding] = []

    init(writer: Side, reader: Side, dropsUnknownMembers: Bool = false) {
        (self.writer, self.reader, self.dropsUnknownMembers) = (writer, reader, dropsUnknownMembers)
    }

    /// Returns the differences of two types. Each pair of named types is compared once, at its first use.
    ///
    /// - Parameters:
    ///   - subject: the place of the types.
    ///   - fills: whether the reader fills absent members from an initial value.
    mutating func compare(
        _ written: SchemaType, _ read: SchemaType, at subject: String, fills: Bool = false
    ) -> [Finding] {
        found = []
        check(written, read, at: subject, fills: fills)
        return found
    }

    private mutating func report(_ subject: String, _ text: String) {
        found.append(Finding(subject: subject, text: text))
    }

    private mutating func check(_ written: SchemaType, _ read: SchemaType, at subject: String, fills: Bool = false) {
        let (written, read) = (writer.resolved(written), reader.resolved(read))
        switch (written, read) {
        case (_, .tolerant), (_, .typeScript("unknown")): return
        case (.tolerant(let inner), _): check(inner, read, at: subject)
        case (.optional(let inner), .optional(let other)): check(inner, other, at: subject)
        case (_, .optional(let other)): check(written, other, at: subject)
        case (.optional(let inner), _):
            report(subject, "may be null in \(writer.values), required by \(reader.name)")
            check(inner, read, at: subject)
        case (.array(let one), .array(let other)), (.set(let one), .set(let other)), (.array(let one), .set(let other)),
            (.set(let one), .array(let other)), (.range(let one), .range(let other)):
            check(one, other, at: subject)
        case (.record(let key, let value), .record(let otherKey, let other)),
            (.map(let key, let value), .map(let otherKey, let other)):
            check(key, otherKey, at: subject)
            check(value, other, at: subject)
        case (.plain(let name), .plain(let other)):
            if !PlainTypes.reads(other, name) { mismatch(written, read, at: subject) }
        case (.reference, .plain("String")): return
        case (.named, _), (_, .named): checkNamed(written, read, at: subject, fills: fills)
        default:
            if written != read { mismatch(written, read, at: subject) }
        }
    }

    private mutating func mismatch(_ written: SchemaType, _ read: SchemaType, at subject: String) {
        report(subject, "'\(written)' in \(writer.values), '\(read)' for \(reader.name)")
    }

    private mutating func checkNamed(_ written: SchemaType, _ read: SchemaType, at subject: String, fills: Bool) {
        guard compared.insert(Pair(written: written, read: read, fills: fills)).inserted else { return }
        let (one, other) = (writer.definition(written), reader.definition(read))
        switch (one?.form, other?.form) {
        case (.structure(let members)?, .structure(let otherMembers)?):
            check(
                members.map { ($0, one?.bindings ?? [:]) }, otherMembers.map { ($0, other?.bindings ?? [:]) },
                of: one?.swiftName ?? "", other?.swiftName ?? "", fills: fills)
        case (.union(let cases)?, .union(let otherCases)?):
            let known = Dictionary(otherCases.map { ($0.name, $0) }) { first, _ in first }
            for each in cases {
                let name = "\(one?.swiftName ?? "").\(each.name)"
                guard let match = known[each.name] else {
                    unknownCase(name)
                    continue
                }
                check(
                    each.members.map { ($0, one?.bindings ?? [:]) }, match.members.map { ($0, other?.bindings ?? [:]) },
                    of: name, "\(other?.swiftName ?? "").\(each.name)", fills: false)
            }
        case (.rawValues(let cases)?, .rawValues(let otherCases)?):
            let known = Set(otherCases.map(\.value))
            for each in cases where !known.contains(each.value) { unknownCase("\(one?.swiftName ?? "").\(each.name)") }
        case (.rawValues(let cases)?, nil):
            let isRead = cases.allSatisfy { each in
                switch each.value {
                case .string: read == .plain("String")
                case .number(let number):
                    if case .plain(let name) = read { PlainTypes.reads(name, number) } else { false }
                }
            }
            if !isRead { mismatch(written, read, at: subject) }
        default: mismatch(written, read, at: subject)
        }
    }

    private mutating func unknownCase(_ name: String) {
        report(name, "a case in \(writer.values) that \(reader.name) do not know")
    }

    private typealias Members = [(member: SchemaDocument.Member, bindings: [String: SchemaType])]

    private mutating func check(
        _ members: Members, _ otherMembers: Members, of name: String, _ otherName: String, fills: Bool
    ) {
        let written = Dictionary(members.map { ($0.member.name, $0) }) { first, _ in first }
        for (member, bindings) in otherMembers {
            let subject = "\(otherName).\(member.name)"
            guard let own = written[member.name] else {
                if !member.isOptional, !fills {
                    report(subject, "absent in \(writer.values), required by \(reader.name)")
                }
                continue
            }
            if own.member.isOptional, !member.isOptional, !fills {
                report(subject, "may be absent in \(writer.values), required by \(reader.name)")
            }
            let read = member.type.replacing(bindings)
            check(
                own.member.type.replacing(own.bindings), member.isOptional ? .optional(read) : read, at: subject,
                fills: fills && !own.member.isOptional && !member.isOptional)
        }
        guard dropsUnknownMembers else { return }
        let known = Set(otherMembers.map(\.member.name))
        for (member, _) in members where !known.contains(member.name) {
            report("\(name).\(member.name)", "in \(writer.values), dropped by the next write of \(reader.name)")
        }
    }
}

/// Types without parts.
private enum PlainTypes {
    private static let integers: [String: (isSigned: Bool, bits: Int)] = [
        "Int8": (true, 8), "Int16": (true, 16), "Int32": (true, 32), "Int64": (true, 64), "Int": (true, 64),
        "UInt8": (false, 8), "UInt16": (false, 16), "UInt32": (false, 32), "UInt64": (false, 64), "UInt": (false, 64),
    ]
    private static let texts: Set<String> = ["String", "URL", "UUID", "Date", "Data"]

    /// Returns whether a reader of one type reads each value of another.
    static func reads(_ reader: String, _ writer: String) -> Bool {
        if reader == writer { return true }
        if reader == "String" { return texts.contains(writer) }
        if ["Double", "Decimal"].contains(reader) {
            return integers[writer] != nil || ["Double", "Decimal"].contains(writer)
        }
        guard let read = integers[reader], let written = integers[writer] else { return false }
        if read.isSigned == written.isSigned { return written.bits <= read.bits }
        return read.isSigned && written.bits < read.bits
    }

    /// Returns whether a reader of a type reads a number.
    static func reads(_ reader: String, _ number: Double) -> Bool {
        if ["Double", "Decimal"].contains(reader) { return true }
        guard let type = integers[reader], number.rounded() == number else { return false }
        let limit = Double(sign: .plus, exponent: type.isSigned ? type.bits - 1 : type.bits, significand: 1)
        return number < limit && number >= (type.isSigned ? -limit : 0)
    }
}
