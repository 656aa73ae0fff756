internal import Bytes
internal import Foundation
internal import Platform
internal import Synchronization
public import Trebuchet
internal import TrebuchetActors

/// The recorded state of an actor from the inspector, for a test that repeats its calls. "Copy as test" generates such
/// tests.
///
/// An actor creates different identities (UUIDs) in each run. An identity that appears in place of a recorded one
/// replaces it from then on, in values too.
public final class RecordedState: Sendable {
    private let recorded = Mutex<[String: String]>([:])

    /// Creates a recording without known identities.
    public init() {}

    /// Decodes a recorded value from its JSON. Throws if it has another type.
    public func callAsFunction<Value: Decodable>(_ json: String, as type: Value.Type = Value.self) throws -> Value {
        let identities = recorded.withLock { $0 }
        let text = identities.reduce(json) { $0.replacing($1.key, with: $1.value) }
        return try Array(text.utf8).withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
    }

    /// Returns true if a state equals the recorded one, at most `time` from now. Dates may differ.
    public func matches<Value>(
        _ json: String, in states: StateStream<Value>, within time: Duration = .seconds(5)
    ) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await state in states where self.matches(json, state) { return true }
                return false
            }
            group.addTask {
                var patience = Patience(time)
                try? await patience.wait()
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }

    private func matches(_ json: String, _ state: some Encodable) -> Bool {
        var buffer = ByteBuffer()
        guard (try? ValueCoder().encode(state, into: &buffer)) != nil else { return false }
        func parsed(_ data: Data) -> Any? { try? JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed) }
        guard let wanted = parsed(Data(json.utf8)), let shown = parsed(Data(buffer.bytes)) else { return false }
        return recorded.withLock { recorded in
            var found = recorded
            guard Self.isSame(wanted, shown, &found) else { return false }
            recorded = found
            return true
        }
    }

    private static func isSame(_ wanted: Any, _ shown: Any, _ recorded: inout [String: String]) -> Bool {
        switch (wanted, shown) {
        case (let wanted as [String: Any], let shown as [String: Any]):
            guard wanted.keys.sorted() == shown.keys.sorted() else { return false }
            return wanted.keys.sorted().allSatisfy { isSame(wanted[$0] ?? 0, shown[$0] ?? 0, &recorded) }
        case (let wanted as [Any], let shown as [Any]):
            return wanted.count == shown.count && zip(wanted, shown).allSatisfy { isSame($0, $1, &recorded) }
        case (let wanted as String, let shown as String):
            if let known = recorded[wanted] { return known == shown }
            if wanted == shown { return true }
            if UUID(uuidString: wanted) != nil, UUID(uuidString: shown) != nil {
                recorded[wanted] = shown
                return true
            }
            return isMoment(wanted) && isMoment(shown)
        case (let wanted as NSNumber, let shown as NSNumber): return wanted == shown
        default: return wanted is NSNull && shown is NSNull
        }
    }

    private static func isMoment(_ text: String) -> Bool {
        text.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/) != nil
    }
}
