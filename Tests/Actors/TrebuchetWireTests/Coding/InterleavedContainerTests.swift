import Bytes
import Foundation
import Testing

@testable import TrebuchetWire

/// Values that write to several containers in alternation, or directly into the output.
@Suite(.timeLimit(.minutes(5))) struct InterleavedContainerTests {
    @Test("alternating writes to containers take linear time, also when each turn creates one")
    func byTurns() throws {
        // Quadratic time would be minutes.
        let count = 10_000
        let text = try written(
            Encoded { encoder in
                var all = encoder.container(keyedBy: AnyKey.self)
                var first = all.nestedUnkeyedContainer(forKey: "first")
                for index in 0..<count {
                    var one = all.nestedUnkeyedContainer(forKey: AnyKey(stringValue: "n\(index)"))
                    try one.encode(index)
                    try first.encode(index)
                }
            })
        let found = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: [Int]])
        #expect(found.count == count + 1)
        #expect(found["first"] == Array(0..<count))
        #expect(found["n9999"] == [9_999])
    }

    /// Writes itself directly, and fails in the middle.
    private struct Broken: Encodable, DirectJSON {
        init() {}
        init(json: inout JSONCursor, depth: Int) throws { self.init() }
        func write(json: inout ByteBuffer) throws {
            json.append("[1,{\"a\":" as StaticString)
            throw Failure()
        }
        func encode(to encoder: any Encoder) throws { _ = try writeDirectly(to: encoder) }
        struct Failure: Error {}
    }

    @Test("a value that fails while it writes directly leaves no output")
    func halfWritten() throws {
        let forgiving = Encoded { encoder in
            do { try Broken().encode(to: encoder) } catch {
                var container = encoder.singleValueContainer()
                try container.encode("instead")
            }
        }
        #expect(try written([forgiving]) == #"["instead"]"#)
        let silent = Encoded { encoder in try? Broken().encode(to: encoder) }
        #expect(try written([silent]) == "[{}]")
    }

    private struct Plain: Encodable, DirectJSON {
        init() {}
        init(json: inout JSONCursor, depth: Int) throws { self.init() }
        func write(json: inout ByteBuffer) { json.append("1" as StaticString) }
        func encode(to encoder: any Encoder) throws { _ = try writeDirectly(to: encoder) }
    }

    private indirect enum Nest: Encodable {
        case plain, within(Nest)
        func encode(to encoder: any Encoder) throws {
            switch self {
            case .plain: try Plain().encode(to: encoder)
            case .within(let inner):
                var array = encoder.unkeyedContainer()
                try array.encode(inner)
            }
        }
    }

    @Test("a value writes directly only at depths that can be decoded again", arguments: [(447, true), (449, false)])
    func deep(levels: Int, isTaken: Bool) throws {
        var value = Nest.plain
        for _ in 0..<levels { value = .within(value) }
        if isTaken {
            #expect(try written(value).count == 2 * levels + 1)
        } else {
            #expect(throws: EncodingError.self) { try written(value) }
        }
    }
}
