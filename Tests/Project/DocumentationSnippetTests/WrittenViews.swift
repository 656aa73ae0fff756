import Foundation
import Loading
import Observation
import Relays
import SharedState
import Testing
import Trebuchet
import TrebuchetServices

// The view blocks of the guides to shared operations and to the relay, verbatim.

// MARK: Building blocks

@MainActor
private protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {
    fileprivate var body: Never { return fatalError() }
}

/// Any view, as the number of its parts.
private struct Made: View {
    let parts: Int
    var body: Never { return fatalError() }
    func disabled(_ isDisabled: Bool) -> Made { self }
    func foregroundStyle(_ style: Style) -> Made { self }
    func onAppear(_ act: () -> Void) -> Made {
        act()
        return self
    }
    enum Style { case red }
}

@resultBuilder
private enum ViewBuilder {
    static func buildExpression(_ made: Made) -> Made { made }
    static func buildExpression(_ view: some View) -> Made { Made(parts: 1) }
    static func buildBlock(_ parts: Made...) -> Made { Made(parts: parts.reduce(0) { $0 + $1.parts }) }
    static func buildOptional(_ part: Made?) -> Made { part ?? Made(parts: 0) }
    static func buildEither(first: Made) -> Made { first }
    static func buildEither(second: Made) -> Made { second }
}

@MainActor private func VStack(@ViewBuilder _ content: () -> Made) -> Made { content() }
@MainActor private func Text(_ text: String) -> Made { Made(parts: 1) }
@MainActor private func ProgressView(_ title: String = "") -> Made { Made(parts: 1) }
/// Pushed at once.
@MainActor private func Button(_ title: String, _ act: @MainActor () -> Void) -> Made {
    act()
    return Made(parts: 1)
}

@MainActor
@propertyWrapper
private final class State<Value> {
    var wrappedValue: Value
    init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}

// MARK: Signing in

@MainActor
private struct Callbacks {
    enum Screen { case home }

    @Shared(.instantAuth) private var auth: AuthSession
    @State var navigationPath: [Screen] = []
    @State var shown: [String] = []
    @State var isFormEnabled = false
    let email = "ada@example.org"

    func showError(_ error: any Error) { shown.append("error") }
    func dismissKeyboard() { shown.append("dismissed") }

    func signIn() {
        // Example: Navigate optimistically before server confirms
        $auth.signInAsGuest(
            onAttempt: {
                // Immediately show the next screen with a loading indicator
                // This feels faster to the user
                navigationPath.append(.home)
            },
            onSuccess: { user in
                // Server confirmed, update UI with actual user data
                print("Signed in as \(user.id)")
            },
            onError: { error in
                // Oops, go back and show error
                navigationPath.removeLast()
                showError(error)
            }
        )
    }

    func send() {
        $auth.sendMagicCode(
            to: email,
            onSettled: { result in
                // Always runs - good for cleanup
                // result is Result<Data?, Error>
                isFormEnabled = true
                dismissKeyboard()
            }
        )
    }
}

private struct SignIn: View {
    @Shared(.instantAuth) private var auth: AuthSession

    var body: some View {
        VStack {
            // Read state reactively
            switch auth.state {
            case .loading:
                ProgressView("Loading...")
            case .unauthenticated:
                signInButton
            case .guest(let user):
                Text("Welcome, Guest \(user.id)")
            case .authenticated(let user):
                Text("Welcome, \(user.email ?? "User")")
            }

            // Show operation-specific loading
            if auth.isLoading {
                ProgressView()
            }

            // Show errors
            if let error = auth.error {
                Text("Error: \(error.localizedDescription)")
                    .foregroundStyle(.red)
                Button("Dismiss") { $auth.reset() }
            }
        }
    }

    var signInButton: some View {
        Button("Sign In as Guest") {
            $auth.signInAsGuest()
            // That's it! UI updates automatically via auth.state
        }
        .disabled(auth.isLoading)
    }
}

private struct AuthDemo: View {
    @Shared(.instantAuth) private var auth: AuthSession

    var body: some View {
        Button("Sign In") {
            $auth.signInAsGuest()
        }
        .disabled(auth.isLoading)

        if let error = auth.error {
            Text(error.localizedDescription)
        }
    }
}

// MARK: Rooms

private struct EmojiPayload: Codable, Sendable, Equatable {
    var emoji: String
}

private typealias EmojiTopic = EmojiPayload

private struct ChatPresence: Codable, Sendable, Equatable {
    var name: String
    var isTyping = false
}

extension Schema.Topics {
    fileprivate static let emoji = TopicKey<EmojiTopic>(roomType: "demo", topic: "emoji")
}

extension Schema.Rooms {
    fileprivate static let chat = RoomKey<ChatPresence>(type: "demo")
}

private struct Emojis: View {
    @State var shown: [String] = []

    func animateEmoji(_ emoji: String) { shown.append(emoji) }
    func showToast(_ text: String) { shown.append(text) }

    @Shared(.instantTopic(Schema.Topics.emoji, roomId: "demo-123"))
    private var channel: TopicChannel<EmojiTopic>

    func celebrate() {
        // Publish with optimistic animation
        $channel.publish(EmojiPayload(emoji: "🎉")) { payload in
            // onAttempt: Called immediately
            animateEmoji(payload.emoji)
        } onError: { error in
            // onError: Called if publish fails
            showToast("Failed to send emoji")
        }
    }

    var body: some View {
        // Show connection errors
        if let error = channel.error {
            Text("Topic error: \(error.localizedDescription)")
        }
    }
}

private struct Presence: View {
    @Shared(.instantPresence(Schema.Rooms.chat, roomId: "demo-123", initialPresence: ChatPresence(name: "Ada")))
    private var presence: RoomPresence<ChatPresence>

    func type() {
        $presence.withLock { state in
            state.user.isTyping = true
        }
    }

    var body: some View {
        Text(presence.user.name)
        if presence.user.isTyping { Text("…") }
    }
}

// MARK: Loaders

private enum Guide {
    @Observable
    @MainActor
    open class BaseLoadable<Value: Hashable & Sendable>: Loadable {
        // State relay that maintains current state and supports multiple observers
        @ObservationIgnored private let stateRelay = StateRelay<LoadingState<Value>>(.idle)

        /// The current loading state - can be read synchronously
        public var currentState: LoadingState<Value> {
            stateRelay.currentValue
        }

        /// An async sequence of state changes - replays current value to new observers
        public var state: any AsyncSequence<LoadingState<Value>, Never> {
            stateRelay.stream
        }

        /// Updates the loading state. Used by subclasses that need custom state updates.
        public func updateState(_ state: LoadingState<Value>) {
            stateRelay.update(state)
        }
    }
}

/// Code that the guide's loader omits.
extension Guide.BaseLoadable {
    var isCanceled: Bool { false }
    func cancel() {}
    func reset() { updateState(.idle) }
    func load() async { updateState(.loading(nil)) }
}

private struct Appearing<L: Loadable>: View {
    let loader: L
    @State var loadingState: LoadingState<L.Value> = .idle

    var body: some View {
        Text("\(loadingState)")
            .onAppear {
                // Sync with loader's current state
                if let baseLoader = loader as? BaseLoadable<L.Value> {
                    let currentState = baseLoader.currentState
                    if loadingState != currentState {
                        loadingState = currentState
                    }
                }
            }
    }
}

@MainActor
@Suite struct WrittenViews {
    @Test("the views and callbacks of the guide to operations compile and run verbatim")
    func operations() async {
        SharedStore.$current.withValue(SharedStore()) {
            let callbacks = Callbacks()
            callbacks.signIn()
            #expect(callbacks.navigationPath == [.home])
            callbacks.send()
            let made: [any View] = [SignIn().body, AuthDemo().body]
            #expect(made.compactMap { ($0 as? Made)?.parts } == [2, 1])
        }
    }

    @Test("the views and callbacks of the guide to rooms compile and run verbatim")
    func rooms() {
        SharedStore.$current.withValue(SharedStore()) {
            let emojis = Emojis()
            emojis.celebrate()
            #expect(emojis.shown == ["🎉"])
            let presence = Presence()
            presence.type()
            #expect((presence.body as? Made)?.parts == 2)
        }
    }

    @Test("the loader and its view of the guide to the relay compile and run verbatim")
    func loaders() async {
        let written = Guide.BaseLoadable<Int>()
        await written.load()
        #expect(written.currentState == .loading(nil))
        let loader = BlockLoadable { "profile" }
        await loader.load()
        let view = Appearing(loader: loader)
        _ = view.body
        #expect(view.loadingState == .loaded("profile"))
    }
}
