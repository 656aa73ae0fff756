import ClientGenerator
import Testing

/// Deprecated declarations are marked in the generated client.
@Suite struct DeprecationTests {
    @Test("the deprecation of each kind of declaration is in its comment")
    func comments() {
        let generation = generated(
            """
            /// A list.
            @available(*, deprecated, message: "use Board")
            @Trebuchet distributed actor List {
                /// Adds an item.
                @available(*, deprecated, message: "use add(_:)")
                @Idempotent distributed func add(title: String) {}
                @available(*, deprecated) distributed func remove() {}
                @available(*, deprecated, renamed: "total") distributed var count: Int { 1 }
                @available(*, deprecated, message: "use \\"items\\" */") @StreamedState var state: State = State()
                @StreamedEvents @available(*, deprecated, message: "gone soon") var changes: Change
                distributed func total() -> Int { 1 }
                @available(macOS, deprecated: 13) @available(iOS 15, *) distributed func platform() {}
            }
            @available(*, deprecated, message: "use Items")
            struct State: Codable {
                @available(*, deprecated, message: "use 'title'") var name: String?
                var title: String?
            }
            enum Change: Codable {
                @available(*, deprecated, message: "never sent") case one
                case two
            }
            """)
        #expect(generation.messages == [])
        for part in [
            "/**\n * A list.\n * @deprecated use Board\n */\nexport const List",
            "        /**\n         * Adds an item.\n         * @deprecated use add(_:)\n         */\n        add(title: string",
            "        /** @deprecated */\n        remove(",
            "        /** @deprecated renamed to 'total' */\n        count(",
            "        /** @deprecated use \"items\" *\\/ */\n        state: State\n",
            "        /** @deprecated gone soon */\n        changes: Change\n",
            "        count(options?: CallOptions): Call<number>\n        total(",
            "        total(options?: CallOptions): Call<number>\n        platform(",
            "/** @deprecated use Items */\nexport interface State {",
            "    /** @deprecated use 'title' */\n    name?: string\n    title?: string\n",
            "    /** @deprecated never sent */\n    | { one: Record<string, never> }\n    | { two:",
        ] {
            #expect(generation.typeScript.contains(part), "\(part) is missing in\n\(generation.typeScript)")
        }
    }
}
