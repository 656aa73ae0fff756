internal import Platform

/// Reads rules from the JSON of a file, and collects all problems.
struct RuleReader {
    private let file: String
    private let text: [UInt8]
    /// The maximum number of reported problems; the rest is counted.
    private static let maximumProblems = 1_000
    /// The maximum number of warnings, because each needs a search for its line.
    private static let maximumWarnings = 100
    /// The maximum number of entries for collections, and for rooms: each lookup of a name compares all of them.
    private static let maximumEntries = 1_000

    private var found: [(offset: Int, member: String, message: String)] = []
    private var unreportedCount = 0
    private var roles: [String] = []
    private var knownRoles = Set(RoleSet.words)
    /// The positions of entries by member: `collections.todos`.
    private var offsets: [String: Int] = [:]

    init(_ text: [UInt8], file: String) {
        self.text = text
        self.file = file
    }

    // MARK: Problems

    mutating func recordError(_ offset: Int, _ member: String, _ message: @autoclosure () -> String) {
        guard found.count < Self.maximumProblems else { return unreportedCount += 1 }
        found.append((offset, member, message()))
    }

    /// Shortens a name for messages.
    static func excerpt(of name: String) -> String {
        name.utf8.count <= 256 ? name : String(decoding: name.utf8.prefix(256), as: UTF8.self) + "…"
    }

    private func line(_ offset: Int) -> Int { 1 + text.prefix(offset).count { $0 == UInt8(ascii: "\n") } }

    private func problem(_ error: RuleValue.SyntaxError) -> RuleProblem {
        let offset = min(error.offset, text.count)
        let start = text.prefix(offset).lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        let column = 1 + String(decoding: text[start..<offset], as: UTF8.self).unicodeScalars.count
        return RuleProblem(file: file, line: line(offset), column: column, member: nil, message: error.message)
    }

    mutating func rulesFile() throws(RulesFileError) -> RulesFile {
        let root: RuleValue
        do throws(RuleValue.SyntaxError) {
            if let offset = Self.firstNoText(text) {
                throw RuleValue.SyntaxError(offset: offset, message: "not valid UTF-8")
            }
            root = try RuleValue(text: text)
        } catch {
            throw RulesFileError(problems: [problem(error)])
        }
        var rulesFile = rulesFile(root)
        guard found.isEmpty else {
            throw RulesFileError(problems: problems)
        }
        rulesFile.warnings = rulesFile.traps.map { trap in
            (offsets[trap.member] ?? 0, trap)
        }.sorted { $0.0 < $1.0 }.prefix(Self.maximumWarnings).map { offset, trap in
            RuleProblem(
                file: file, line: line(offset), column: nil, member: Self.excerpt(of: trap.member),
                message: trap.message)
        }
        return rulesFile
    }

    /// The problems in the order of their lines. Lines are counted in one pass.
    private var problems: [RuleProblem] {
        var (line, counted) = (1, 0)
        var problems: [RuleProblem] = []
        for (offset, member, message) in found.sorted(by: { $0.offset < $1.offset }) {
            line += text[counted..<offset].count { $0 == UInt8(ascii: "\n") }
            counted = offset
            problems.append(RuleProblem(file: file, line: line, column: nil, member: member, message: message))
        }
        guard unreportedCount > 0 else { return problems }
        let rest = RuleProblem(
            file: file, line: nil, column: nil, member: nil, message: unreportedCount.counted("more problem"))
        return problems + [rest]
    }

    /// Returns the position of the first line that is not UTF-8; nil when there is none.
    private static func firstNoText(_ text: [UInt8]) -> Int? {
        guard String(validating: text, as: UTF8.self) == nil else { return nil }
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return lines.first { String(validating: $0, as: UTF8.self) == nil }?.startIndex
    }

    private mutating func rulesFile(_ root: RuleValue) -> RulesFile {
        let members = members(of: root, "", ["roles", "collections", "rooms"])
        // First, because entries refer to roles.
        roles = members["roles"].map { declaredRoles($0) } ?? []
        knownRoles.formUnion(roles)
        let collections = entries(members["collections"], "collections") { $0.collection($1, $2, $3) }
        let rooms = entries(members["rooms"], "rooms") { $0.room($1, $2, $3) }
        return RulesFile(collections: collections, rooms: rooms, roles: roles)
    }

    // MARK: Parts

    /// Returns the members of an object, without unknown ones.
    mutating func members(of value: RuleValue, _ path: String, _ known: [String]) -> [String: RuleValue] {
        var members: [String: RuleValue] = [:]
        for member in allMembers(of: value, path) {
            guard known.contains(member.name) else {
                recordError(
                    member.offset, path,
                    "unknown member '\(Self.excerpt(of: member.name))'; "
                        + (Self.hint(member.name, known) ?? "known are \(known.joined(separator: ", "))"))
                continue
            }
            members[member.name] = member.value
        }
        return members
    }

    /// Returns a suggestion for an unknown name; nil for a name longer than any known one, because the comparison would be
    /// slow.
    static func hint(_ name: String, _ known: [String]) -> String? {
        guard name.utf8.count <= CollectionLimits.maximumNameLength else { return nil }
        return NearestMatch.find(name, in: Array(known.prefix(100))).map { "did you mean '\($0)'?" }
    }

    mutating func allMembers(of value: RuleValue, _ path: String) -> [RuleValue.Member] {
        guard let all = value.members else {
            recordError(value.offset, path, "must be an object")
            return []
        }
        var names: Set<ByteText> = []
        return all.filter { member in
            let isNew = names.insert(ByteText(member.name)).inserted
            if !isNew { recordError(member.offset, path, "duplicate member '\(Self.excerpt(of: member.name))'") }
            return isNew
        }
    }

    private mutating func entries<Entry>(
        _ value: RuleValue?, _ path: String,
        _ make: (inout RuleReader, NamePattern, RuleValue, _ path: String) -> Entry
    ) -> [Entry] {
        guard let value else { return [] }
        let members = allMembers(of: value, path)
        guard members.count <= Self.maximumEntries else {
            recordError(value.offset, path, "has \(members.count) entries; at most \(Self.maximumEntries) are allowed")
            return []
        }
        return members.map { member in
            let isName = CollectionLimits.isName(member.name.filter { $0 != "*" } + "x")
            if !isName || member.name.isEmpty {
                recordError(
                    member.offset, path,
                    "'\(Self.excerpt(of: member.name))' is not a valid name; use letters, digits, -, _ and ., and * for any"
                )
            }
            offsets["\(path).\(member.name)"] = member.offset
            return make(&self, NamePattern(member.name), member.value, "\(path).\(Self.excerpt(of: member.name))")
        }
    }

    private mutating func declaredRoles(_ value: RuleValue) -> [String] {
        guard let elements = value.elements else {
            recordError(value.offset, "roles", "must be an array of names")
            return []
        }
        return elements.compactMap { element in
            guard let name = try? element.json.string, CollectionLimits.isName(name) else {
                recordError(element.offset, "roles", "a role's name must be a string of letters, digits, -, _ and .")
                return nil
            }
            guard !RoleSet.words.contains(name) else {
                recordError(element.offset, "roles", "'\(name)' is built in and must not be listed")
                return nil
            }
            return name
        }
    }

    /// Reads a role or keyword, or an array of them.
    ///
    /// - Parameter isOfDocument: true when keywords for existing documents are allowed.
    mutating func roles(_ value: RuleValue?, _ path: String, isOfDocument: Bool) -> RoleSet? {
        guard let value else { return nil }
        let elements = value.elements ?? [value]
        let known = RoleSet.words + roles.prefix(100)
        var names: [String] = []
        for element in elements {
            guard let name = try? element.json.string else {
                recordError(element.offset, path, "must be a role, or an array of roles, as \"user\"")
                continue
            }
            if !knownRoles.contains(name) {
                recordError(
                    element.offset, path,
                    "'\(Self.excerpt(of: name))' is not a role; "
                        + (Self.hint(name, known) ?? "declare custom roles in 'roles' at the top level"))
            } else if RoleSet.ofDocuments.contains(name), !isOfDocument {
                recordError(
                    element.offset, path,
                    "'\(name)' has no effect here, because there is no creator yet; use '\(RoleSet.signedIn)'")
            } else if name == RoleSet.nobody, elements.count > 1 {
                recordError(element.offset, path, "'nobody' cannot be combined with other roles")
            }
            names.append(name)
        }
        if elements.isEmpty { recordError(value.offset, path, "must not be empty; write \"nobody\"") }
        return RoleSet(names)
    }

    mutating func bool(_ value: RuleValue?, _ path: String) -> Bool? {
        guard let value else { return nil }
        if let bool = try? value.json.bool { return bool }
        recordError(value.offset, path, "must be true or false")
        return nil
    }

    mutating func count(_ value: RuleValue?, _ path: String, from least: Int = 1) -> Int? {
        guard let value else { return nil }
        if let number = try? value.json.int, number >= least, number <= 1 << 40 { return number }
        recordError(value.offset, path, "must be an integer of at least \(least)")
        return nil
    }

    mutating func rate(_ value: RuleValue?, _ path: String) -> Double? {
        guard let value else { return nil }
        if let number = try? value.json.double, number > 0, number <= 0x1p40 { return number }
        recordError(value.offset, path, "must be a number greater than 0")
        return nil
    }
}
