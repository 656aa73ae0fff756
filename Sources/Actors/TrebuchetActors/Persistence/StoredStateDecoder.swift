internal import TrebuchetWire

/// Decodes a stored state whose type may have changed since.
///
/// A value stored by an older version is migrated. Then each member that the type requires and the stored value lacks is taken
/// from the property's initial value, one at a time. They are not added in advance, because an object without a member may be a
/// dictionary from which the key was removed.
struct StoredStateDecoder {
    /// The maximum number of members that are taken from the initial value for one state.
    static let maximumFilledElements = 256

    let version: _StateVersion
    let coder: ValueCoder

    /// A decoded value.
    struct Outcome<Value> {
        let value: Value
        /// Set if the value differs from the stored one.
        let isNew: Bool
    }

    func read<Value: Codable>(_ stored: StoredState, initial: Value) throws -> Outcome<Value> {
        guard stored.version <= version.number else {
            throw StoredStateDecodingError(
                "schema version \(stored.version) is newer than this program's version \(version.number): run the program "
                    + "version that wrote the state, or a newer version")
        }
        return try decode(try migrated(stored), stored, initial)
    }

    private func migrated(_ stored: StoredState) throws -> JSONValue? {
        guard stored.version < version.number, let migrate = version.migrate else { return nil }
        do {
            var json = try Self.json(stored)
            try migrate(&json, stored.version)
            return json
        } catch {
            throw StoredStateDecodingError(
                "'migrate' from version \(stored.version) to \(version.number) failed: \(describe(error))")
        }
    }

    private func decode<Value: Codable>(
        _ migrated: JSONValue?, _ stored: StoredState, _ initial: Value
    ) throws -> Outcome<Value> {
        var json = migrated
        var text = migrated.map { ArraySlice($0.json) } ?? stored.json
        var source: JSONValue?
        for count in 0... {
            do {
                let value = try text.withUnsafeBytes { try coder.decode(Value.self, from: $0) }
                return Outcome(value: value, isNew: json != nil)
            } catch let error as ValueError {
                guard count < Self.maximumFilledElements, let name = error.missing,
                    let encodedInitial = source ?? (try? JSONValue(encoding: initial, with: coder, .written)),
                    var filled = json ?? (try? Self.json(stored)),
                    filled.fill(name, at: error.path[...], from: encodedInitial)
                else { throw unreadable(error, stored) }
                source = encodedInitial
                text = ArraySlice(filled.json)
                json = filled
            }
        }
        fatalError("the loop ends within")
    }

    private static func json(_ stored: StoredState) throws -> JSONValue {
        try stored.json.withUnsafeBytes { try JSONValue($0, .written) }
    }

    private func unreadable(_ error: ValueError, _ stored: StoredState) -> StoredStateDecodingError {
        let member = error.member.isEmpty ? "its value" : "its member '\(error.member)'"
        let remedy =
            error.missing == nil
            ? "extend the type's decoding"
            : "make the member optional, or include it in the property's initial value (not for array elements)"
        return StoredStateDecodingError(
            "\(member) does not match the type: \(remedy), or \(migration(of: stored)); \(error.description)")
    }

    /// Returns the instruction for writing a migration.
    private func migration(of stored: StoredState) -> String {
        guard stored.version < version.number else {
            return "migrate the stored value with '@StreamedState(persisted: true, version: \(version.number + 1), "
                + "migrate: { json, from in … })'"
        }
        return version.migrate == nil
            ? "add 'migrate: { json, from in … }' after 'version: \(version.number)' to convert values of version "
                + "\(stored.version)"
            : "let 'migrate' convert values of version \(stored.version)"
    }
}

/// The reason why a stored state does not decode, with a remedy.
struct StoredStateDecodingError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension JSONValue {
    /// Adds the member with this name to the object at `path`, from the object at the same path of another value.
    ///
    /// - Returns: false if one of the two objects does not exist, the other value lacks the member, or this one has it.
    mutating func fill(_ name: String, at path: ArraySlice<String>, from other: JSONValue) -> Bool {
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
