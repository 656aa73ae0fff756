internal import TrebuchetWire

/// Makes a value of what is stored of it, where the type may have grown since.
///
/// What was stored by an older version is migrated. Then a member that the type asks for and what is stored lacks is taken from the
/// value that the property has until it is loaded, one at a time: an object that has it not may be a dictionary, whose missing keys
/// were taken out of it.
struct StateReader {
    /// Members that are taken from the initial value for one state.
    static let mostFilled = 256

    let version: _StateVersion
    let coder: ValueCoder

    struct Outcome<Value> {
        let value: Value
        /// Whether it is other than what is stored.
        let isNew: Bool
    }

    func read<Value: Codable>(_ stored: StoredState, initial: Value) throws -> Outcome<Value> {
        guard stored.version <= version.number else {
            throw UnreadableState(
                "it has version \(stored.version), and this program reads versions up to \(version.number): run the program "
                    + "that wrote it, or a newer one")
        }
        return try decode(try migrated(stored), stored, initial)
    }

    private func migrated(_ stored: StoredState) throws -> StateJSON? {
        guard stored.version < version.number, let migrate = version.migrate else { return nil }
        do {
            var json = try StateJSON(utf8: stored.json)
            try migrate(&json, stored.version)
            return json
        } catch {
            throw UnreadableState(
                "'migrate' from version \(stored.version) to \(version.number) failed: \(describe(error))")
        }
    }

    private func decode<Value: Codable>(
        _ migrated: StateJSON?, _ stored: StoredState, _ initial: Value
    ) throws -> Outcome<Value> {
        var json = migrated
        var text = migrated.map { ArraySlice($0.utf8) } ?? stored.json
        var source: StateJSON?
        for count in 0... {
            do {
                let value = try text.withUnsafeBytes { try coder.decode(Value.self, from: $0) }
                return Outcome(value: value, isNew: json != nil)
            } catch let error as ValueError {
                guard count < Self.mostFilled, let name = error.missing,
                    let given = source ?? (try? StateJSON(encoding: initial, with: coder)),
                    var filled = json ?? (try? StateJSON(utf8: stored.json)),
                    filled.fill(name, at: error.path[...], from: given)
                else { throw unreadable(error, stored) }
                source = given
                text = ArraySlice(filled.utf8)
                json = filled
            }
        }
        fatalError("the loop ends within")
    }

    private func unreadable(_ error: ValueError, _ stored: StoredState) -> UnreadableState {
        let member = error.member.isEmpty ? "its value" : "its member '\(error.member)'"
        let remedy =
            error.missing == nil
            ? "let the type read it"
            : "make the member optional, give the property an initial value that has it there (not for elements of arrays)"
        return UnreadableState(
            "\(member) is not what the type needs: \(remedy), or \(migration(of: stored)); \(error.description)")
    }

    /// What there is to write to have it migrated.
    private func migration(of stored: StoredState) -> String {
        guard stored.version < version.number else {
            return "change what is stored with '@StreamedState(persisted: true, version: \(version.number + 1), "
                + "migrate: { json, from in … })'"
        }
        return version.migrate == nil
            ? "write 'migrate: { json, from in … }' behind 'version: \(version.number)', which changes what version "
                + "\(stored.version) has stored"
            : "have 'migrate' make it of what version \(stored.version) has stored"
    }
}

/// Why what is stored of a state is not a value of it, and what to do.
struct UnreadableState: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension StateJSON {
    /// Gives the object at `path` the member of this name from the object at the same path of another value.
    ///
    /// - Returns: false when one of the two is not there, or not an object, the other value lacks the member, or this has it.
    mutating func fill(_ name: String, at path: ArraySlice<String>, from other: StateJSON) -> Bool {
        guard case .object(let members) = other else { return false }
        guard let step = path.first else {
            guard case .object = self, self[name] == nil, let value = members[name] else { return false }
            self[name] = value
            return true
        }
        guard let inner = members[step] else { return false }
        return self[step]?.fill(name, at: path.dropFirst(), from: inner) ?? false
    }
}
