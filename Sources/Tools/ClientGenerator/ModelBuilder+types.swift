internal import SwiftParser
internal import SwiftReading
internal import SwiftSyntax

/// Reads types from their syntax.
extension ModelBuilder {
    func read(_ type: TypeSyntax, _ scope: Scope) -> WireType {
        switch type.as(TypeSyntaxEnum.self) {
        case .attributedType(let attributed): return read(attributed.baseType, scope)
        case .optionalType(let optional): return .optional(read(optional.wrappedType, scope))
        case .implicitlyUnwrappedOptionalType(let optional): return .optional(read(optional.wrappedType, scope))
        case .arrayType(let array): return .array(read(array.element, scope))
        case .dictionaryType(let dictionary):
            return self.dictionary(
                read(dictionary.key, scope), read(dictionary.value, scope), at: scope.location(of: dictionary.key))
        case .tupleType(let tuple):
            if let only = tuple.elements.first, tuple.elements.count == 1 { return read(only.type, scope) }
            return rejectType(type, "a tuple, which is not Codable; use a struct", scope)
        case .identifierType, .memberType: return resolve(type, scope)
        case .someOrAnyType(let some) where some.someOrAnySpecifier.tokenKind == .keyword(.any):
            return rejectType(
                type, "an existential with an unknown JSON form; use an enum with a case for each type",
                scope)
        case .someOrAnyType: return rejectType(type, "an opaque type; name the type", scope)
        case .compositionType: return rejectType(type, "an existential; use an enum with a case for each type", scope)
        case .functionType: return rejectType(type, "a function, which is not Codable", scope)
        case .metatypeType: return rejectType(type, "a metatype, which is not Codable", scope)
        default: return rejectType(type, "an unknown type", scope)
        }
    }

    private func rejectType(_ type: TypeSyntax, _ what: String, _ scope: Scope) -> WireType {
        problems.error(scope.location(of: type), "'\(type.trimmedDescription)' is \(what)")
        return .unknown
    }

    // MARK: Names

    /// One component of a qualified type name, with its generic arguments.
    private struct Component {
        let name: String
        let arguments: [TypeSyntax]
        let node: TypeSyntax
    }

    private func components(_ type: TypeSyntax) -> [Component] {
        func arguments(_ clause: GenericArgumentClauseSyntax?) -> [TypeSyntax] {
            clause?.arguments.compactMap { if case .type(let type) = $0.argument { type } else { nil } } ?? []
        }
        switch type.as(TypeSyntaxEnum.self) {
        case .memberType(let member):
            return components(member.baseType) + [
                Component(name: member.name.plainText, arguments: arguments(member.genericArgumentClause), node: type)
            ]
        case .identifierType(let identifier):
            return [
                Component(
                    name: identifier.name.plainText, arguments: arguments(identifier.genericArgumentClause), node: type)
            ]
        case .attributedType(let attributed): return components(attributed.baseType)
        default: return []
        }
    }

    private func resolve(_ type: TypeSyntax, _ scope: Scope) -> WireType {
        let path = components(type)
        guard let first = path.first else { return rejectType(type, "an unknown type", scope) }
        // The stub of a `@Resolvable` protocol represents any actor that conforms to it.
        if first.name.hasPrefix("$"), path.count == 1,
            case .type(let found) = index.find(String(first.name.dropFirst()), from: scope.file, elsewhere: true),
            found.kind == .protocol
        {
            return .reference(found.qualifiedName)
        }
        if let bound = scope.bindings[first.name] {
            guard path.count > 1 else { return bound }
            guard case .named(let id, let arguments) = bound else {
                return rejectType(type, "a type of a generic parameter; name it with a type alias", scope)
            }
            return resolve(path.dropFirst(), in: index.types[id], arguments, scope)
        }
        if first.name == "Self", let ownType = scope.type {
            return resolve(
                path.dropFirst(), in: ownType, ownType.genericParameters.map { scope.bindings[$0] ?? .unknown }, scope)
        }
        var around = scope.type
        while let type = around {
            if let found = type.nested[first.name] { return resolvePath(path, to: found, scope) }
            around = type.parent
        }
        switch index.find(first.name, from: scope.file, elsewhere: false) {
        case .type(let found): return resolvePath(path, to: found, scope)
        case .several(let found): return ambiguous(type, found, scope)
        case .none: break
        }
        if path.count == 1, let builtInType = builtInType(first, scope) { return builtInType }
        if path.count > 1, Self.systemModules.contains(first.name) || index.isModule(first.name) {
            if let found = index.find(path[1].name, inModule: first.name) {
                return resolvePath(Array(path.dropFirst()), to: found, scope)
            }
            if path.count == 2, let builtInType = builtInType(path[1], scope) { return builtInType }
        }
        switch index.find(first.name, from: scope.file, elsewhere: true) {
        case .type(let found): return resolvePath(path, to: found, scope)
        case .several(let found): return ambiguous(type, found, scope)
        case .none: return externalType(type, path, scope)
        }
    }

    /// Returns the declared type of a name in a scope, without a diagnostic if there is none.
    func declared(_ type: TypeSyntax, _ scope: Scope) -> DeclaredType? {
        let path = DeclarationIndex.path(type)
        guard let first = path.first else { return nil }
        var found: DeclaredType?
        var around = scope.type
        while let type = around, found == nil {
            found = type.nested[first]
            around = type.parent
        }
        if found == nil, case .type(let top) = index.find(first, from: scope.file, elsewhere: true) { found = top }
        for name in path.dropFirst() { found = found?.nested[name] }
        return found
    }

    /// Returns the type of an initial value: as far as it follows from the syntax, or the enum of a case that the
    /// sources declare.
    func type(of value: ExprSyntax, _ scope: Scope) -> TypeSyntax? {
        switch InitialValueType(of: value) {
        case .known(let type): return type
        case .guess(let type):
            let callee = value.as(FunctionCallExprSyntax.self)?.calledExpression ?? value
            guard let name = callee.as(MemberAccessExprSyntax.self)?.declName.baseName.plainText,
                let found = declared(type, scope), elements(of: found).contains(where: { $0.name.plainText == name })
            else { return nil }
            return type
        case .unknown: return nil
        }
    }

    private func ambiguous(_ type: TypeSyntax, _ found: [DeclaredType], _ scope: Scope) -> WireType {
        let locations = found.map { "\($0.location)" }.joined(separator: ", ")
        return rejectType(type, "declared several times (\(locations)); pass the folders of one target", scope)
    }

    /// Resolves a type that the sources do not declare. A comment above an extension of it may define it.
    private func externalType(_ type: TypeSyntax, _ path: [Component], _ scope: Scope) -> WireType {
        for (node, file) in index.foreignExtensions[path.last?.name ?? ""] ?? [] {
            if let custom = customTypeName(directives(Comments(node), at: file.location(of: node))) {
                return .custom(custom)
            }
        }
        let name = type.trimmedDescription
        problems.error(
            scope.location(of: type),
            "'\(name)' is not declared in the given sources; add its folder, or write "
                + "'// trebuchet: TypeScript = …' above the member, or above a type alias or an extension of it")
        return .unknown
    }

    private func resolvePath(_ path: [Component], to found: DeclaredType, _ scope: Scope) -> WireType {
        let first = path[0]
        let arguments = self.arguments(
            of: found, first.arguments.map { read($0, scope) }, outer: scope.bindings,
            at: scope.location(of: first.node))
        return resolve(path.dropFirst(), in: found, arguments, scope, at: first.node)
    }

    /// Returns the arguments for all generic parameters of a type. The arguments of enclosing types come from the
    /// scope.
    private func arguments(
        of type: DeclaredType, _ ownArguments: [WireType], outer: [String: WireType], at location: SourcePosition
    ) -> [WireType] {
        let names = type.genericParameters
        let missing =
            ownArguments.count > names.count || names.dropLast(ownArguments.count).contains { outer[$0] == nil }
        if missing {
            problems.error(
                location,
                "'\(type.qualifiedName)' requires its generic arguments here: \(names.joined(separator: ", "))")
            return names.map { _ in .unknown }
        }
        return names.dropLast(ownArguments.count).map { outer[$0] ?? .unknown } + ownArguments
    }

    /// Resolves the remaining names in a type.
    private func resolve(
        _ remaining: ArraySlice<Component>, in type: DeclaredType, _ arguments: [WireType], _ scope: Scope,
        at node: TypeSyntax? = nil
    ) -> WireType {
        guard let next = remaining.first else {
            return resolveType(type, arguments, at: node.map { scope.location(of: $0) } ?? type.location, scope)
        }
        let bindings = Dictionary(zip(type.genericParameters, arguments)) { first, _ in first }
        if let nested = type.nested[next.name] {
            let ownArguments = next.arguments.map { read($0, scope) }
            let all = self.arguments(of: nested, ownArguments, outer: bindings, at: scope.location(of: next.node))
            return resolve(remaining.dropFirst(), in: nested, all, scope, at: next.node)
        }
        if type.kind == .alias {
            if case .named(let id, let arguments) = resolveType(type, arguments, at: type.location, scope) {
                return resolve(remaining, in: index.types[id], arguments, scope, at: node)
            }
        } else if remaining.count == 1, next.name == "ID",
            let id = storedProperties(of: type).first(where: { $0.name == "id" }),
            let written = id.type
        {
            return read(written, Scope(type.file, in: type, bindings: bindings, integers: scope.integers))
        } else if remaining.count == 1, next.name == "RawValue", let raw = rawValueType(of: type, bindings) {
            return raw
        }
        problems.error(
            scope.location(of: next.node), "'\(type.qualifiedName)' has no known type '\(next.name)'")
        return .unknown
    }

    // MARK: Declared types

    private func resolveType(_ type: DeclaredType, _ arguments: [WireType], at location: SourcePosition, _ scope: Scope)
        -> WireType
    {
        let directives = directives(type.comments, at: type.location)
        switch type.kind {
        case .alias where customTypeName(directives) == nil:
            return alias(type, arguments, integers(directives, else: scope.integers))
        case .protocol where customTypeName(directives) == nil:
            problems.error(
                location,
                "'\(type.qualifiedName)' is a protocol with an unknown JSON form; use an enum "
                    + "with a case for each type")
            return .unknown
        case .actor:
            guard type.node.as(ActorDeclSyntax.self)?.modifiers.isDistributed == true else {
                problems.error(
                    location, "'\(type.qualifiedName)' is an actor that is not distributed, so it is not Codable")
                return .unknown
            }
            return .reference(type.qualifiedName)
        default: break
        }
        if arguments.contains(.unknown) { return .unknown }
        define(type, directives)
        return .named(type.id, arguments)
    }

    private func alias(_ type: DeclaredType, _ arguments: [WireType], _ integers: Integers) -> WireType {
        guard let target = type.node.as(TypeAliasDeclSyntax.self)?.initializer.value else { return .unknown }
        guard openAliases.insert(type.id).inserted else {
            problems.error(type.location, "'\(type.qualifiedName)' refers to itself")
            return .unknown
        }
        defer { openAliases.remove(type.id) }
        let bindings = Dictionary(zip(type.genericParameters, arguments)) { first, _ in first }
        return read(target, Scope(type.file, in: type.parent, bindings: bindings, integers: integers))
    }

    // MARK: Known types

    static let systemModules: Set<String> = [
        "Swift", "Foundation", "FoundationEssentials", "CoreFoundation", "Trebuchet", "TrebuchetServices",
        "TrebuchetServicesModel", "TrebuchetServicesClient", "TrebuchetWire", "Deltas", "SharedState",
    ]

    private func builtInType(_ component: Component, _ scope: Scope) -> WireType? {
        let name = component.name
        let location = scope.location(of: component.node)
        func argument(_ index: Int) -> WireType {
            guard component.arguments.indices.contains(index) else {
                problems.error(location, "'\(name)' requires its generic arguments here")
                return .unknown
            }
            return read(component.arguments[index], scope)
        }
        switch name {
        case "String": return .string
        case "Bool": return .boolean
        case "Int", "Int8", "Int16", "Int32", "UInt", "UInt8", "UInt16", "UInt32":
            return .number(name)
        case "Int64", "UInt64": return wideInteger(name, at: location, scope)
        case "Double", "Float", "Float16", "CGFloat", "TimeInterval", "Float32", "Float64": return .number("Double")
        case "Date": return .date
        case "Data": return .data
        case "UUID": return .uuid
        case "URL": return .url
        case "Decimal": return .decimal
        case "Array", "ContiguousArray", "ArraySlice", "KeyedCollection", "IdentifiedArrayOf":
            return .array(argument(0))
        case "IdentifiedArray": return .array(argument(1))
        case "Set": return .set(argument(0))
        case "Range", "ClosedRange": return .range(argument(0))
        case "Optional": return .optional(argument(0))
        case "Tolerant": return .tolerant(argument(0))
        case "Dictionary": return dictionary(argument(0), argument(1), at: location)
        // It writes only its value. As a property wrapper it is handled with the property.
        case "DeltaValue": return argument(0)
        case "TrebuchetActorID": return .string
        case "JSONValue": return .custom("unknown")
        case "JSONObject": return .custom("{ [name: string]: unknown }")
        case "Any", "AnyObject", "Error", "Codable", "Sendable", "Substring", "Character", "Never", "Result", "Void",
            "Int128", "UInt128", "AnyHashable":
            problems.error(location, "'\(name)' cannot be sent; use another type")
            return .unknown
        default: return nil
        }
    }

    private func wideInteger(_ name: String, at location: SourcePosition, _ scope: Scope) -> WireType {
        switch scope.integers {
        case .bigint: return .bigint(name)
        case .number: return .number(name)
        case .unspecified:
            problems.warn(
                location,
                "'\(name)' maps to 'number', which is exact only up to 2^53; write '// trebuchet: bigint' or "
                    + "'// trebuchet: number' above it, or pass --bigint")
            return .number(name)
        }
    }

    func dictionary(_ key: WireType, _ value: WireType, at location: SourcePosition) -> WireType {
        if [key, value].contains(.unknown) { return .unknown }
        switch key {
        case .string, .number("Int"): return .record(key: key, value)
        case .parameter(let name):
            problems.error(
                location,
                "the JSON form of a dictionary depends on its key type, and '\(name)' may be any type; "
                    + "use '[String: …]', or an array of a struct")
            return .unknown
        case .custom:
            problems.error(
                location, "the keys of a dictionary cannot have a type declared by a comment; use an array of a struct")
            return .unknown
        case .named(let id, _):
            if conforms(index.types[id], to: ["CodingKeyRepresentable"]) {
                // The texts of the keys are the names of the members.
                if isTextBacked(model.definitions[id]) { return .record(key: key, value) }
                problems.error(
                    location, "the key form of '\(index.types[id].qualifiedName)' is unknown; use '[String: …]'")
                return .unknown
            }
            switch model.definitions[id]?.form {
            case .rawValues, .id: break
            default: warnOfIdentity(location)
            }
        case .date, .data, .array, .set, .range, .record, .map: warnOfIdentity(location)
        default: break
        }
        return .map(key, value)
    }

    private func isTextBacked(_ definition: ClientModel.Definition?) -> Bool {
        switch definition?.form {
        case .rawValues(let cases):
            cases.allSatisfy { each in
                switch each.value {
                case .string: true
                case .number(let text): Int(text) != nil
                }
            }
        case .id(let raw): raw == .string || raw == .number("Int")
        default: false
        }
    }

    private func warnOfIdentity(_ location: SourcePosition) {
        problems.warn(
            location,
            "keys of this type are objects in JavaScript, and a Map compares objects by identity; use an array of a "
                + "struct")
    }
}

/// Reads the coded form of declared types.
extension ModelBuilder {
    func define(_ type: DeclaredType, _ directives: [Directive]) {
        guard model.definitions[type.id] == nil else { return }
        // Registered before its form is read, because types may contain each other.
        model.definitions[type.id] = ClientModel.Definition(
            name: typeScriptName(of: type), swiftName: type.qualifiedName, parameters: type.genericParameters,
            documentation: documentation(type), form: .structure([]))
        let form = form(of: type, directives)
        model.definitions[type.id]?.form = form
    }

    private func form(of type: DeclaredType, _ directives: [Directive]) -> ClientModel.Form {
        if let custom = customTypeName(directives) { return .custom(custom) }
        let integers = integers(directives, else: self.integers)
        guard isReadable(type, isAsDeclared: directives.contains(.asDeclared)) else { return .custom("never") }
        if type.kind == .enumeration, let raw = rawCases(of: type) { return .rawValues(raw) }
        if conforms(type, to: ["RawRepresentable", "OptionSet"]) {
            switch rawValueType(of: type, nil) {
            // The standard library codes only these as raw values; with raw values of other types the properties are
            // coded.
            case let raw? where [.string, .boolean].contains(raw): return .id(raw)
            case .number(let name)?: return .id(.number(name))
            case .bigint(let name)?: return .id(.bigint(name))
            case .some: break
            case nil:
                problems.error(
                    type.location, "the raw value type of '\(type.qualifiedName)' cannot be determined; write its type")
            }
        }
        switch type.kind {
        case .enumeration: return .union(cases(of: type, integers))
        case .class:
            checkClass(type)
            return .structure(members(of: type, integers))
        default: return .structure(members(of: type, integers))
        }
    }

    // MARK: Codable

    /// Returns true if a type conforms to one of the protocols, directly or through protocols and aliases that the
    /// sources declare.
    func conforms(_ type: DeclaredType, to names: Set<String>) -> Bool {
        var seen: Set<Int> = []
        return conforms(type, to: names, &seen)
    }

    private func conforms(_ type: DeclaredType, to names: Set<String>, _ seen: inout Set<Int>) -> Bool {
        guard seen.insert(type.id).inserted else { return false }
        if type.inheritedNames.contains(where: names.contains) { return true }
        if let target = type.node.as(TypeAliasDeclSyntax.self)?.initializer.value {
            let parts = target.as(CompositionTypeSyntax.self)?.elements.map(\.type) ?? [target]
            if parts.contains(where: { names.contains(DeclarationIndex.path($0).last ?? "") }) { return true }
        }
        for parent in protocols(of: type) where conforms(parent, to: names, &seen) { return true }
        return false
    }

    /// Returns the inherited protocols, and aliases of protocols, that the sources declare.
    private func protocols(of type: DeclaredType) -> [DeclaredType] {
        type.inheritedNames.compactMap { name in
            guard case .type(let found) = index.find(name, from: type.file, elsewhere: true) else { return nil }
            return [.protocol, .alias].contains(found.kind) ? found : nil
        }
    }

    func isCodable(_ type: DeclaredType) -> Bool {
        type.hasAttribute("Wire") || conforms(type, to: ["Codable", "DeltaRecord", "DeltaState"])
            || (conforms(type, to: ["Encodable"]) && conforms(type, to: ["Decodable"]))
    }

    /// Returns true if the declaration determines the JSON. Otherwise reports an error.
    private func isReadable(_ type: DeclaredType, isAsDeclared: Bool) -> Bool {
        guard isCodable(type) else {
            problems.error(
                type.location,
                "'\(type.qualifiedName)' is sent, but the sources do not declare it Codable; if a macro does, "
                    + "write '// trebuchet: TypeScript = …' above it")
            return false
        }
        guard !isAsDeclared else { return true }
        let custom = (type.allMembers.map { ($0.node, $0.file) } + membersOfProtocols(of: type)).compactMap(
            customCoding)
        // The encoded form matters more than the decoded one.
        guard let found = custom.first(where: { $0.what == "encode(to:)" }) ?? custom.first else { return true }
        problems.error(
            found.location,
            "'\(type.qualifiedName)' has a custom '\(found.what)', so its JSON form is unknown; write "
                + "'// trebuchet: TypeScript = …' above the type, or '// trebuchet: as declared' if the JSON has the declared members"
        )
        return false
    }

    /// Returns the members from extensions of a type's protocols, including protocols that the sources do not declare.
    private func membersOfProtocols(of type: DeclaredType) -> [(DeclSyntax, SourceFile)] {
        var seen: Set<Int> = [type.id]
        var waiting = [type]
        var found: [(DeclSyntax, SourceFile)] = []
        while let next = waiting.popLast() {
            for parent in protocols(of: next) where seen.insert(parent.id).inserted {
                found += parent.extensions.flatMap { part in part.members.map { ($0, part.file) } }
                waiting.append(parent)
            }
            for part in next.inheritedNames.flatMap({ index.foreignExtensions[$0] ?? [] }) {
                found += index.conditions.members(part.node.memberBlock.members).map { ($0, part.file) }
            }
        }
        return found
    }

    private func customCoding(_ member: DeclSyntax, _ file: SourceFile) -> (what: String, location: SourcePosition)? {
        if let function = member.as(FunctionDeclSyntax.self), !function.modifiers.isStatic {
            return WireName.method(function) == "encode(to:)" ? ("encode(to:)", file.location(of: function.name)) : nil
        }
        guard let initializer = member.as(InitializerDeclSyntax.self) else { return nil }
        let parameters = initializer.signature.parameterClause.parameters
        guard parameters.map(\.firstName.plainText) == ["from"],
            parameters.first?.type.trimmedDescription.contains("Decoder") == true
        else { return nil }
        return ("init(from:)", file.location(of: initializer.initKeyword))
    }

    private func checkClass(_ type: DeclaredType) {
        for name in ["Observable", "Model"] where type.hasAttribute(name) {
            problems.error(
                type.location,
                "'\(type.qualifiedName)' is marked '@\(name)', which writes other members than are declared; use a struct"
            )
        }
        for name in type.inheritedNames {
            guard case .type(let found) = index.find(name, from: type.file, elsewhere: true), found.kind == .class
            else { continue }
            problems.error(
                type.location,
                "'\(type.qualifiedName)' inherits from '\(name)', which writes its own members; use a struct")
        }
    }

    // MARK: Stored properties

    /// A stored property of a declared type.
    struct StoredProperty {
        let name: String
        let type: TypeSyntax?
        let node: VariableDeclSyntax
        let location: SourcePosition
    }

    func storedProperties(of type: DeclaredType) -> [StoredProperty] {
        let scope = Scope(type.file, in: type, integers: .number)
        return type.members.flatMap { member -> [StoredProperty] in
            guard let variable = member.as(VariableDeclSyntax.self), !variable.modifiers.isStatic else { return [] }
            let bindings = Array(variable.bindings)
            return bindings.enumerated().compactMap { position, binding in
                guard !binding.isComputed, let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier
                else {
                    return nil
                }
                // In `var a, b: Int`, a name has the type of the next one with a type.
                let written =
                    binding.typeAnnotation?.type
                    ?? (binding.initializer == nil
                        ? bindings[position...].first { $0.typeAnnotation != nil }?.typeAnnotation?.type : nil)
                return StoredProperty(
                    name: name.plainText,
                    type: written ?? binding.initializer.flatMap { self.type(of: $0.value, scope) },
                    node: variable, location: type.file.location(of: name))
            }
        }
    }

    private func members(of type: DeclaredType, _ integers: Integers) -> [ClientModel.Member] {
        let keys = codingKeys("CodingKeys", of: type)
        return storedProperties(of: type).compactMap { property in
            guard let key = keys?[property.name] ?? (keys == nil ? property.name : nil) else { return nil }
            return member(property, named: key, of: type, integers)
        }
    }

    private func member(
        _ property: StoredProperty, named key: String, of type: DeclaredType, _ outer: Integers
    ) -> ClientModel.Member? {
        let comments = Comments(property.node)
        let directives = directives(comments, at: property.location)
        var isOptional = property.type.map(Self.isWrittenOptional) ?? false
        var read: WireType?
        if let custom = customTypeName(directives) {
            read = .custom(custom)
        } else {
            guard let written = property.type else {
                problems.error(
                    property.location,
                    "the type of '\(property.name)' cannot be inferred; write it, as in '\(property.name): Int'")
                return nil
            }
            if property.node.modifiers.contains(where: { $0.name.tokenKind == .keyword(.lazy) }) {
                problems.error(
                    property.location, "'\(property.name)' is lazy, and such a property is written under another name")
            }
            var scope = Scope(type.file, in: type, integers: integers(directives, else: outer))
            scope.fallback = property.location
            var type = self.read(written, scope)
            isOptional = type.isOptional
            if isOptional, case .optional(let wrapped) = type { type = wrapped }
            read = type
        }
        guard let read else { return nil }
        if customTypeName(directives) == nil, let wrapper = wrapper(of: property.node) {
            if wrapper != "DeltaValue" {
                problems.error(
                    property.location,
                    "the JSON form of the property wrapper '@\(wrapper)' is unknown; write '// trebuchet: TypeScript = …' "
                        + "above '\(property.name)'")
            }
            // A wrapper is written even if its value is nil.
            return ClientModel.Member(
                name: key, type: isOptional ? .optional(read) : read,
                documentation: documentation(comments, property.node.attributes))
        }
        return ClientModel.Member(
            name: key, type: read, isOptional: isOptional,
            documentation: documentation(comments, property.node.attributes))
    }

    private static func isWrittenOptional(_ type: TypeSyntax) -> Bool {
        type.is(OptionalTypeSyntax.self) || type.is(ImplicitlyUnwrappedOptionalTypeSyntax.self)
            || type.as(IdentifierTypeSyntax.self)?.name.text == "Optional"
    }

    /// Returns the name of a property's wrapper. An attribute with a lower-case name belongs to the language.
    private func wrapper(of node: VariableDeclSyntax) -> String? {
        index.conditions.attributes(node.attributes).map(\.plainName).first { name in
            name.first?.isUppercase == true && !["MainActor", "ObservationIgnored"].contains(name)
        }
    }

    // MARK: Keys

    /// Returns the keys by the names of the members or cases; nil if the type has no such enum.
    func codingKeys(_ name: String, of type: DeclaredType) -> [String: String]? {
        var found = type.nested[name]
        if let alias = found?.node.as(TypeAliasDeclSyntax.self) {
            let path = DeclarationIndex.path(alias.initializer.value)
            found = path.last.flatMap { last in
                type.nested[last] ?? type.parent?.nested[last]
                    ?? {
                        if case .type(let found) = index.find(last, from: type.file, elsewhere: true) {
                            found
                        } else {
                            nil
                        }
                    }()
            }
        }
        guard let keys = found else { return nil }
        guard keys.kind == .enumeration else {
            problems.error(
                keys.location,
                "'\(keys.qualifiedName)' is not an enum; use an enum, or write '// trebuchet: TypeScript = …' above '\(type.qualifiedName)'"
            )
            return nil
        }
        guard conforms(keys, to: ["CodingKey"]) else { return nil }
        var result: [String: String] = [:]
        for element in elements(of: keys) {
            // Integer keys use their case names as text.
            let text = element.rawValue?.value.as(StringLiteralExprSyntax.self)?.representedLiteralValue
            result[element.name.plainText] = text ?? element.name.plainText
        }
        return result
    }

    // MARK: Enums

    func elements(of type: DeclaredType) -> [EnumCaseElementSyntax] {
        type.members.flatMap { $0.as(EnumCaseDeclSyntax.self).map { Array($0.elements) } ?? [] }
    }

    private func cases(of type: DeclaredType, _ outer: Integers) -> [ClientModel.Case] {
        let keys = codingKeys("CodingKeys", of: type)
        let declarations = type.members.compactMap { $0.as(EnumCaseDeclSyntax.self) }
        if declarations.isEmpty {
            problems.error(type.location, "'\(type.qualifiedName)' has no cases and therefore no value to send")
        }
        return declarations.flatMap { declaration -> [ClientModel.Case] in
            let comments = Comments(declaration)
            let location = type.file.location(of: declaration)
            let directives = directives(comments, at: location)
            return declaration.elements.compactMap { element in
                let name = element.name.plainText
                guard let key = keys?[name] ?? (keys == nil ? name : nil) else { return nil }
                let members = values(of: element, named: name, of: type, directives, outer)
                return ClientModel.Case(
                    name: key, members: members, documentation: documentation(comments, declaration.attributes))
            }
        }
    }

    private func values(
        of element: EnumCaseElementSyntax, named name: String, of type: DeclaredType, _ directives: [Directive],
        _ outer: Integers
    ) -> [ClientModel.Member] {
        let keys = codingKeys(name.prefix(1).uppercased() + name.dropFirst() + "CodingKeys", of: type)
        let scope = Scope(type.file, in: type, integers: integers(directives, else: outer))
        let parameters = Array(element.parameterClause?.parameters ?? [])
        return parameters.enumerated().compactMap { position, parameter in
            let label = parameter.firstName?.plainText ?? "_"
            let own = label == "_" ? "_\(position)" : label
            guard let key = keys?[own] ?? (keys == nil ? own : nil) else { return nil }
            if let custom = customTypeName(parameters.count == 1 ? directives : []) {
                return ClientModel.Member(
                    name: key, type: .custom(custom), isOptional: Self.isWrittenOptional(parameter.type))
            }
            let read = self.read(parameter.type, scope)
            guard case .optional(let wrapped) = read else { return ClientModel.Member(name: key, type: read) }
            return ClientModel.Member(name: key, type: wrapped, isOptional: true)
        }
    }
}

extension PatternBindingSyntax {
    /// True if it has a getter. A property with only observers is stored.
    var isComputed: Bool {
        switch accessorBlock?.accessors {
        case .getter: true
        case .accessors(let list):
            list.contains { !["willSet", "didSet"].contains($0.accessorSpecifier.text) }
        case nil: false
        @unknown default: true
        }
    }
}
