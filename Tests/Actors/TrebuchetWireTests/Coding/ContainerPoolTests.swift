import Foundation
import Synchronization
import Testing

@testable import TrebuchetWire

/// Containers of objects are pooled; a retained container is not reused.
@Suite(.timeLimit(.minutes(5))) struct ContainerPoolTests {
    private final class RetainedContainers<Value>: @unchecked Sendable {
        // Used by one test, on its thread.
        var values: [Value] = []
    }

    private func coder(_ body: @escaping Decoded.Body) -> ValueCoder { ValueCoder(userInfo: [.body: body]) }

    @Test("a container that outlives its decoding finds no values, whatever is decoded then")
    func decoding() throws {
        let retained = RetainedContainers<KeyedDecodingContainer<AnyKey>>()
        var coder: ValueCoder? = coder { decoder in
            let all = try decoder.container(keyedBy: AnyKey.self)
            retained.values.append(all)
            return try all.decode(String.self, forKey: "a")
        }
        for text in ["1", "2", "3"] {
            #expect(try read(Decoded.self, #"{"a":"\#(text)"}"#, coder!).text == text)
        }
        coder = nil
        #expect(retained.values.count == 3)
        for container in retained.values {
            #expect(!container.contains("a") && container.allKeys.isEmpty && container.codingPath.isEmpty)
            #expect(throws: DecodingError.self) { try container.decode(String.self, forKey: "a") }
            #expect(throws: DecodingError.self) { try container.superDecoder().container(keyedBy: AnyKey.self) }
        }
    }

    @Test("two containers of one object, and of nested objects, are distinct")
    func both() throws {
        let coder = coder { decoder in
            let one = try decoder.container(keyedBy: AnyKey.self)
            let inner = try one.nestedContainer(keyedBy: AnyKey.self, forKey: "in")
            let again = try decoder.container(keyedBy: AnyKey.self)
            let innermost = try inner.nestedContainer(keyedBy: AnyKey.self, forKey: "in")
            return try [one, inner, again, innermost].map { try $0.decode(String.self, forKey: "a") }.joined()
        }
        for _ in 0..<3 {
            let text = #"{"a":"1","in":{"a":"2","in":{"a":"3"}}}"#
            #expect(try read(Decoded.self, text, coder).text == "1213")
        }
    }

    private struct Tree: Codable, Equatable {
        var name: String
        var below: [Tree]
    }

    @Test("values that contain values of their own type are coded")
    func trees() throws {
        func tree(_ depth: Int) -> Tree {
            Tree(name: "d\(depth)", below: depth == 0 ? [] : [tree(depth - 1), tree(depth - 1)])
        }
        let coder = ValueCoder()
        for _ in 0..<3 {
            let text = try written(tree(6), coder)
            #expect(try read(Tree.self, text, coder) == tree(6))
        }
    }

    /// Types of keys.
    private struct Keys<Tag>: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private struct Nested<Tag>: Codable, Equatable {
        var name = "n"

        init() {}
        init(from decoder: any Decoder) throws {
            name = try decoder.container(keyedBy: Keys<Tag>.self).decode(String.self, forKey: .init(stringValue: "n"))
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys<Tag>.self)
            try container.encode(name, forKey: .init(stringValue: "n"))
        }
    }

    @Test("more key types than the pool has room for are coded")
    func manyKeys() throws {
        let coder = ValueCoder()
        func check<Tag>(_ tag: Tag.Type, _ depth: Int) throws {
            #expect(try written([Nested<Tag>()], coder) == #"[{"n":"n"}]"#)
            #expect(try read([Nested<Tag>].self, #"[{"n":"n"}]"#, coder) == [Nested()])
            if depth > 0 { try check([Tag].self, depth - 1) }
        }
        for _ in 0..<2 { try check(Int.self, 70) }
    }

    @Test("a container that outlives its encoding does not write")
    func encoding() throws {
        let retained = RetainedContainers<KeyedEncodingContainer<AnyKey>>()
        let coder = ValueCoder()
        for text in ["1", "2", "3"] {
            let value = Encoded { encoder in
                var all = encoder.container(keyedBy: AnyKey.self)
                // Into the earlier containers, while another of their kind is written.
                for index in retained.values.indices { try retained.values[index].encode("lost", forKey: "lost") }
                retained.values.append(all)
                try all.encode(text, forKey: "a")
            }
            #expect(try written(value, coder) == #"{"a":"\#(text)"}"#)
        }
        for index in retained.values.indices {
            try retained.values[index].encode("lost", forKey: "lost")
            var nested = retained.values[index].nestedContainer(keyedBy: AnyKey.self, forKey: "b")
            try nested.encode("lost", forKey: "lost")
            #expect(retained.values[index].codingPath.isEmpty)
        }
        #expect(try written(["a": "4"], coder) == #"{"a":"4"}"#)
    }

    @Test("neither a retained encoder nor its containers write after the encoding")
    func retainedEncoder() throws {
        let retained = RetainedContainers<any Encoder>()
        var coder: ValueCoder? = ValueCoder()
        let value = Encoded { encoder in
            retained.values.append(encoder)
            var all = encoder.container(keyedBy: AnyKey.self)
            try all.encode(1, forKey: "a")
        }
        #expect(try written(value, coder!) == #"{"a":1}"#)
        coder = nil
        var late = retained.values[0].container(keyedBy: AnyKey.self)
        retained.values = []
        try late.encode(2, forKey: "b")
        #expect(late.codingPath.isEmpty)
    }
}
