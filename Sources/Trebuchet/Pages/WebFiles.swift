// Written by scripts/embed from the files in Web; do not change it here.
// swift-format-ignore-file

/// What the server brings for browsers.
enum WebFiles {
    /// The client.
    static let trebuchet: StaticString = ####"""
/* trebuchet.js of Trebuchet, MIT License */
var p=class extends Error{constructor(e,n,r,s,o){super(n);this.code=e,this.type=r,this.data=s,this.retryAfter=o}};p.prototype.name="TrebuchetError";var st=4096,ot=2**31-1,at=i=>new TextEncoder().encode(i).length;function M(i,t){let{code:e,message:n,errorMessage:r,type:s,data:o,retryAfterMilliseconds:c}=i,f=s&&t?.errors?.[s.split(".").pop()];return new p(e??"internal",n??r??"",s,f&&o!==void 0?f.read(o):o,c)}var j=class{constructor(t,e,n,r,s){this.b=t;this.e=e;this.P=n;this.ft=r;this.pt=s;this.A=new Map;this.f=[];this.c=0;this.tt=0}et(t,e,n,r={}){let s=new Promise((o,c)=>this.dt(t,e,n,r,(f,v)=>f?c(f):o(v)));return s.result=()=>s.then(o=>({ok:!0,value:o}),o=>({ok:!1,error:o})),s}dt(t,e,n,{signal:r,timeout:s,genericSubstitutions:o,idempotent:c},f){let{target:v}=e,{h:b,e:a}=this,u=Math.min(s??this.b.timeout??3e4,ot),m=(y,T)=>f(new p(y,T));if(r?.aborted)return m("cancelled",v+" was cancelled");let{waitingCalls:h=1e3}=this.b;if(this.f.length>=h*(b.t?10:1))return m("rateLimited",this.f.length+" calls wait to be sent already (waitingCalls)");if(!b.te)return m("unavailable","there is no connection: "+b.u.getSnapshot().error?.message);let d;try{d=this.P.stringify(n.map((y,T)=>y==null?null:e.arguments?.[T]?.write(y)??y))}catch(y){return m("invalidArguments",`${v}: ${y?.message}`)}let l=this.ft(),w=(y,T)=>{g.t&&b._(g.t,"cancel",{callID:String(l)}),g.i(new p(y,T))},S=()=>w("cancelled",v+" was cancelled"),g={p:l,ee:t,nt:e,ne:d,ie:o,re:s?a.now()+u:void 0,At:c??e.idempotent??!1,Lt:0,i:(y,T)=>{this.A.delete(l)&&(a.clearTimeout(O),r?.removeEventListener("abort",S),g.t?this.It(g):this.f=this.f.filter(q=>q!==g),f(y,T),this.N(),b.jt())}},O=u&&a.setTimeout(()=>{let y=g.lt?"answered":"sent, for want of a connection,";w("timeout",`${v} was not ${y} within ${u} ms`)},u);r?.addEventListener("abort",S),this.A.set(l,g),this.f.push(g),this.N()}N(){let t=this.h.t,e=t?.it;if(!(!e||t!==this.t))for(let n=this.f[0];n;n=this.f[0]){if(this.c+this.pt()>=e.callsPerConnection)return;let r=this.se(n,e.session),s=at(r),o=s+st;if(this.c&&this.tt+o>e.callBytesPerConnection)return;let{target:c}=n.nt;if(n.rt&&!e.session)n.i(new p("unknownOutcome",c+" was sent, and the server of now keeps no answers"));else if(s>e.messageSize){let f=`${c} makes a message of ${s} bytes; the server takes ${e.messageSize} (ServerLimits.messageSize)`;n.i(new p(n.lt?"unknownOutcome":"invalidArguments",f))}else this.f.shift(),n.t=t,n.Lt=o,this.c++,this.tt+=o,n.At&&(n.rt??=e.session),n.lt=!0,this.h.Mt(t,r)}}se(t,e){let{re:n,ie:r}=t,s=t.At&&(t.rt??e),o={type:t.rt?"repeat":"invocation",payload:{callID:String(t.p),actorID:t.ee,targetIdentifier:t.nt.target,...r&&{genericSubstitutions:r},...n&&{timeoutMilliseconds:Math.max(1,Math.ceil(n-this.e.now()))},...s&&{session:s}}};return this.P.stringify(o).slice(0,-2)+`,"arguments":${t.ne}}}`}It(t){t.t===this.t&&(this.c--,this.tt-=t.Lt)}$(t){this.t=t,this.c=this.tt=0,this.N()}oe({callID:t,error:e,result:n}){let r=this.A.get(Number(t));if(!r)return!1;let{nt:s}=r,o;try{e?o=M(e,s):s.result&&n!=null&&(n=s.result.read(n))}catch(c){o=new p("internal",`the answer of ${s.target} cannot be read: `+c?.message)}return r.i(o,n),!0}mt(t){return[...this.A.values()].some(e=>e.t===t)}D(t,e){for(let n of[...this.A.values()])n.t===t&&(n.rt?(this.It(n),n.t=void 0,this.f.push(n)):this.Pt(n,e));this.f.sort((n,r)=>n.p-r.p),this.N()}L(t){for(let e of[...this.A.values()])e.t&&!this.h.m||(e.lt?this.Pt(e,t):e.i(new p("unavailable",t.message)))}Pt(t,e){let n=`${t.nt.target} was sent and not answered, so it may have run: ${e.message}`;t.i(new p("unknownOutcome",n))}};function H(i,t,e,n){return i?n*Math.min(t*2**Math.min(i-1,30),e):0}var P=class{constructor(t,e,n){this.e=t;this.ae=e;this.he=n;this._t=0;this.st=!1}dt(){this.Nt(),this.vt()}r(){this.e.clearTimeout(this.w)}Nt(){this._t=this.e.now(),this.st=!1}$t(){this.st||(this.st=!0,this.ae(),this.R(()=>this.st?this.he():this.vt(),1e4))}vt(){let t=()=>this.e.now()-this._t;this.R(()=>{t()<2e4?this.vt():this.e.isVisible()&&this.$t()},2e4-t())}R(t,e){this.r(),this.w=this.e.setTimeout(t,e)}};var x=Object.hasOwn,C=i=>typeof i=="object"&&i!==null;function _(i,t,e){Object.defineProperty(i,t,{value:e,writable:!0,enumerable:!0,configurable:!0})}function Q(i,t){return C(i)&&C(t)&&Array.isArray(i)===Array.isArray(t)}function z(i,t){if(!Q(i,t))return i===t;let e=Object.keys(i);return e.length===Object.keys(t).length&&e.every(n=>x(t,n)&&z(i[n],t[n]))}function F(i,t){if(!Q(i,t))return t;let e=Object.keys(t),n=e.length===Object.keys(i).length;for(let r of e){let s=t[r],o=x(i,r),c=o?F(i[r],s):s;c!==s&&_(t,r,c),n&&=o&&c===i[r]}return n?i:t}function A(i){if(i==="")return[];if(i[0]!=="/"||/~(?![01])/.test(i))throw new SyntaxError("no JSON pointer: "+i);return i.slice(1).split("/").map(t=>t.replace(/~1/g,"/").replace(/~0/g,"~"))}function G(i,t){return C(i)&&x(i,t)&&(!Array.isArray(i)||J(t))?i[t]:void 0}var J=i=>/^(0|[1-9]\d*)$/.test(i);function W(i){(globalThis.reportError??console.error)(i)}var k=class{constructor(){this.U=new Set}get c(){return this.U.size}V(t){let e={et:t};return this.U.add(e),()=>void this.U.delete(e)}n(...t){for(let e of[...this.U])if(this.U.has(e))try{e.et(...t)}catch(n){W(n)}}},L=class{constructor(t){this.o=t;this.s=new k;this.getSnapshot=()=>this.o;this.subscribe=t=>this.s.V(t)}R(t){this.o=t,this.s.n()}};var X=1e4,ht=1e4,ct=6e4,ut={callsPerConnection:1024,callBytesPerConnection:16<<20,messageSize:1<<20},N=class{constructor(t,e,n,r,s){this.C=t;this.b=e;this.e=n;this.P=r;this.T=s;this.m=!1;this.z=new Set;this.p=0;this.F=!1;this.gt=!1;this.I=0;this.Dt=!1;this.W=!1;this.u=new L({phase:"connecting",since:n.now(),failures:0}),this.S=new P(n,()=>this._(this.t,"hello",{}),()=>this.bt(this.t,t+" says nothing any more")),this.Rt=n.listen(()=>this.ce()),this.ht()}get te(){return!this.m&&!!(this.t||this.l||this.F||this.J)}_(t,e,n){this.Mt(t,this.P.stringify({type:e,payload:n}))}Mt(t,e){t.B.readyState===1&&t.B.send(e)}ue(){this.m||(this.I=0,this.W=!1,this.d=void 0,this.K(),this.t&&this.Ut(this.t),!this.l&&!this.F&&this.ht())}de(){if(!this.m){this.m=!0,this.p++,this.d=new p("unavailable","the client was closed"),this.Rt(),this.K(),this.e.clearTimeout(this.ot),this.S.r();for(let t of[this.t,this.l,...this.z])t&&this.q(t);this.t=this.l=void 0,this.n(),this.T.L(this.d)}}jt(){if(this.t)for(let t of this.z)this.T.mt(t)||this.q(t)}bt(t,e){this.q(t),this.wt(t,new p("unavailable",e))}fe(t,e){let n=new p("unauthenticated",e);if(t===this.t){if(typeof this.b.token=="function")return this.q(t),this.wt(t,n);this.d=n,this.W=!0,this.n()}}le(t,e){t===this.t&&(this.Ut(t),this.Vt(t)||this.I++,this.zt(Math.min(Math.max(0,e),ct),!0))}async ht(){let t=++this.p,{token:e}=this.b,n;this.F=!0;try{n=await(typeof e=="function"?e():e)}catch(f){if(t!==this.p)return;this.F=!1;let v="there is no token to connect with: "+f?.message;return this.v(new p("unauthenticated",v))}if(t!==this.p)return;if(this.F=!1,n&&!/^[\w\-.~+]+$/.test(n)){let f="a token has letters, digits and -._~+ alone";return this.v(new p("invalidArguments",f),!0)}let r=["trebuchet.v3"];n&&r.push("bearer."+n);let s;try{s=new(this.b.WebSocket??globalThis.WebSocket)(this.C,r)}catch{let f=`there is no WebSocket, or ${this.C} is no address of one`;return this.v(new p("unavailable",f),!0)}let o={B:s,St:0};this.l=o,this.ot=this.e.setTimeout(()=>this.bt(o,`${this.C} did not answer within ${X/1e3} s`),X);let c;s.onopen=()=>this.H(o),s.onmessage=f=>this.Q(o,f.data),s.onerror=f=>c=Number(/response: (\d{3})/.exec(f?.message)?.[1]),s.onclose=f=>{let{code:v}=f,b=o===this.l&&(c===403||c===401&&typeof e!="function"),a=o.St?`the connection to ${this.C} was closed (${v}${f.reason?" "+f.reason:""})`:c?`${this.C} answers ${c}`:`${this.C} cannot be reached, or does not let this page or its token in: a browser does not tell which`,u=c===401?"unauthenticated":c===403?"unauthorized":"unavailable";this.Ft(o),this.wt(o,new p(u,a),b)},this.n()}H(t){if(this.e.clearTimeout(this.ot),this.l=void 0,t.B.protocol!=="trebuchet.v3")return this.q(t),this.v(new p("unavailable",this.C+" does not speak trebuchet.v3"),!0);this.t=t,t.St=this.e.now(),this._(t,"hello",{}),this.S.dt(),this.T.H(t),this.jt()}Q(t,e){t===this.t&&this.S.Nt();try{let{type:n,payload:r}=this.P.parse(e);n==="hello"||n==="error"&&!t.it?this.$(t,r):n==="goAway"?this.le(t,Number(r.reconnectAfterMilliseconds)||0):n==="error"&&r.code==="unauthenticated"?this.fe(t,r.message):this.T.Q(n,r,t)}catch(n){this.bt(t,"the server sent what is no message: "+n?.message)}}$(t,e){let n=!t.it;t.it={...ut,...C(e.limits)&&e.limits,session:e.session},!(!n||t!==this.t)&&(this.Dt=!0,this.d=void 0,this.W=!1,this.n(),this.T.$(t))}wt(t,e,n=!1){if(t===this.l)return this.e.clearTimeout(this.ot),this.l=void 0,this.v(e,n,e.code!=="unavailable");this.z.delete(t);let r=t===this.t;r&&(this.S.r(),this.t=void 0,this.Vt(t)),this.T.D(t,e),r&&this.v(e)}v(t,e=!1,n=e){if(this.d=t,this.I++,this.W=n,!e)return this.zt(0);this.n(),this.T.L(t)}zt(t,e=!1){this.K(),this.gt=e;let{initialDelay:n=200,maximumDelay:r=1e4}=this.b,s=Math.max(t,H(this.I,n,r,this.e.random()));this.yt=this.e.now()+s,this.J=this.e.setTimeout(()=>{this.K(),this.ht()},s),this.n()}K(){this.e.clearTimeout(this.J),this.J=this.yt=void 0,this.gt=!1}Vt(t){let e=this.e.now()-t.St>=ht;return e&&(this.I=0),e}Ut(t){this.S.r(),this.t=void 0,this.z.add(t),this.n()}q(t){this.z.delete(t),this.Ft(t),t.B.close()}Ft(t){let{B:e}=t;e.onopen=e.onmessage=e.onclose=null,e.onerror=()=>{}}ce(){this.n(),this.e.isVisible()&&(this.t?this.S.$t():this.J&&!this.gt&&(this.K(),this.ht()))}n(){let t=this.u.getSnapshot(),e=this.m?"offline":this.W?"refused":this.t?.it?"live":this.e.isOnline()?this.Dt?"stale":"connecting":"offline",n={phase:e,since:e===t.phase?t.since:this.e.now(),failures:this.I,error:this.d,retryAt:this.yt};Object.keys(n).some(s=>n[s]!==t[s])&&this.u.R(n)}};function Y(){let i=globalThis;return{now:Date.now,random:Math.random,setTimeout:(t,e)=>setTimeout(t,e),clearTimeout:t=>clearTimeout(t),isOnline:()=>i.navigator?.onLine!==!1,isVisible:()=>i.document?.visibilityState!=="hidden",listen(t){let e=["online","offline","pageshow","visibilitychange"];for(let n of e)i.addEventListener?.(n,t);return()=>{for(let n of e)i.removeEventListener?.(n,t)}}}}var I=class{constructor(){this.j=[];this.ct=!1;this.Tt=[];this.r=()=>{}}get c(){return this.j.length}Jt(t,e){if(this.ct)return;let n=this.Tt.shift();if(n)return n.Wt({value:t,done:!1});e&&(this.j.length=0),this.j.push(t)}i(t){if(!this.ct){this.ct=!0,this.d=t,this.r();for(let e of this.Tt.splice(0))this.Bt(e.Wt,e.pe)}}Bt(t,e){let n=this.d;this.d=void 0,n?e(n):t({value:void 0,done:!0})}next(){return new Promise((t,e)=>{this.j.length?t({value:this.j.shift(),done:!1}):this.ct?this.Bt(t,e):this.Tt.push({Wt:t,pe:e})})}return(){return this.j=[],this.i(),Promise.resolve({value:void 0,done:!0})}};var $=class{constructor(t,e,n,r){this.x=t;this.a=e;this.k=n;this.qt=r}get status(){return this.a.u}subscribe(t,e){let n=this.x.Kt(this.a,s=>{let o=s;try{this.k&&s!=null&&(o=this.k.read(s))}catch(c){return r(new p("internal","an event cannot be read: "+c?.message))}t(o)},s=>r(s)),r=s=>{n(),e?.(s)};return n}[Symbol.asyncIterator](){let t=new I,e=this.subscribe(n=>{if(t.c<this.qt)return t.Jt(n);t.i(new p("overflow",`${this.qt} events waited to be read (eventBuffer)`))},n=>t.i(n));return t.r=e,t}};var dt={},E=class{constructor(t,e,n,r=""){this.x=t;this.a=e;this.k=n;this.Gt=r;this.Qt=dt;this.s=new k;this.getSnapshot=()=>{let t=this.Ht.reduce(G,this.a.o);if(t!==this.Qt){this.Qt=t;try{this.o=t==null||!this.k?t:this.k.read(t)}catch(e){W(e)}}return this.o};this.subscribe=t=>{let e=this.s.V(t);if(this.r)this.x.G(this.a);else{let n=this.getSnapshot(),r=()=>{let s=this.getSnapshot();Object.is(s,n)||(n=s,this.s.n())};this.r=this.x.Kt(this.a,r,()=>{})}return()=>{e(),!this.s.c&&(this.r?.(),this.r=void 0)}};this.Ht=A(r)}get status(){return this.a.u}[Symbol.asyncIterator](){let t=new I,e=()=>{let r=this.getSnapshot();r!==void 0&&t.Jt(r,!0)},n=[this.subscribe(e),this.a.Ct.V(r=>t.i(r))];return t.r=()=>n.forEach(r=>r()),e(),t}at(t){return new E(this.x,this.a,Z(this.k,t),this.Gt+t)}filter(t){let{actorID:e,targetIdentifier:n,filter:r}=this.a.xt,s=(r?.path??"")+this.Gt+(t.path??""),o={...r,...t,...s&&{path:s}},c=this.x.a({actorID:e,targetIdentifier:n,filter:o},!1);return new E(this.x,c,Z(this.k,t.path??""))}};function Z(i,t){return A(t).reduce((e,n)=>e?.part?.(n),i)}function tt(i,t){let e=new Set,n=i,r=a=>{throw new Error("the patch does not fit at "+a)},s=a=>{if(e.has(a))return a;let u=Array.isArray(a)?a.slice():{...a};return e.add(u),u},o=(a,u,m)=>{let h=J(a)?Number(a):-1;return h>=0&&h<u?h:r(m)},c=a=>A(a).reduce((u,m)=>Array.isArray(u)?u[o(m,u.length,a)]:C(u)&&x(u,m)?u[m]:r(a),n),f=(a,u)=>{let m=A(a),h=m.pop(),d=n=s(C(n)?n:r(a));for(let l of m){let w=Array.isArray(d)?String(o(l,d.length,a)):l,S=x(d,w)?d[w]:void 0,g=s(C(S)?S:r(a));_(d,w,g),d=g}u(d,h)},v=a=>a===""?r(a):f(a,(u,m)=>{Array.isArray(u)?u.splice(o(m,u.length,a),1):x(u,m)?delete u[m]:r(a)}),b=(a,u,m)=>{a===""?n=u:f(a,(h,d)=>{if(!Array.isArray(h))m&&!x(h,d)&&r(a),_(h,d,u);else if(m)h[o(d,h.length,a)]=u;else{let{length:l}=h;h.splice(d==="-"?l:o(d,l+1,a),0,u)}})};for(let{op:a,path:u,from:m,value:h}of t){let d=a==="add"||a==="replace"||a==="test";if((d?h===void 0:a!=="remove"&&m===void 0)&&r(u),a==="remove")v(u);else if(a==="test")z(c(u),h)||r(u);else if(d)b(u,h,a==="replace");else if(a==="copy"||a==="move"){let l=c(m);if(a==="move"){if(u.startsWith(m+"/")&&r(u),u===m)continue;v(m)}else e=new Set;b(u,l)}else r(u)}return n}var B={phase:"waiting"},et={phase:"live"},ft={phase:"stale"},D=class{constructor(t,e){this.xt=t;this.Y=e;this.u=new L(B);this.s=new k;this.Ct=new k;this.E=!1;this.X="";this.g=0}me(){let{xt:t,y:e,M:n}=this;return n===void 0?["invocation",{callID:e,...t}]:["streamResume",{streamID:n,callID:e,...t,epoch:this.X,lastSequence:this.g}]}kt(){this.X="",this.g=0,this.E=!1}ve({streamID:t,epoch:e,sequenceNumber:n}){let r=e!==this.X;return this.Y&&r&&this.X?!1:(this.M=t,this.X=e,this.E=!0,r&&(this.g=Number(n)||0),(this.Y||!r&&this.o!==void 0)&&this.n(et),!0)}ye({sequenceNumber:t,data:e,patch:n,base:r}){if(!(t>this.g))return!0;if(this.Y)return t!==this.g+1?!1:(this.g=t,this.s.n(e),!0);let s=e;if(n!==void 0){if(r!==this.g||this.o===void 0)return!1;try{s=tt(this.o,n)}catch{return!1}}else{if(e===void 0)return!0;s=F(this.o,e)}this.g=t;let o=s!==this.o;return this.o=s,this.n(et),o&&this.s.n(s),!0}Et(){this.t=this.y=void 0,this.E=!1,this.n(this.o===void 0&&!this.Y?B:ft)}ge(){this.t=this.y=this.M=void 0,this.kt(),this.u.getSnapshot().phase!=="failed"&&this.n(B)}v(t){this.t=this.y=this.M=void 0,this.kt(),this.n({phase:"failed",error:t}),this.Ct.n(t)}n(t){let e=this.u.getSnapshot();(e.phase!==t.phase||e.error!==t.error)&&this.u.R(t)}};var lt=100,pt=6e5,R=class{constructor(t,e){this.e=t;this.ft=e;this.ut=new Map;this.be=new FinalizationRegistry(t=>{this.ut.get(t)?.deref()||this.ut.delete(t)});this.O=new Set;this.pt=()=>{let t=0;for(let e of this.O)e.y&&!e.E&&t++;return t}}a(t,e){let n=JSON.stringify([t,e]),r=this.ut.get(n)?.deref();return r||(r=new D(t,e),this.ut.set(n,new WeakRef(r)),this.be.register(r,n)),r}Kt(t,e,n){let r=[t.s.V(e),t.Ct.V(n)];return this.e.clearTimeout(t.w),this.O.add(t),this.G(t),()=>{for(let s of r.splice(0))s();t.s.c||this.Xt(t,lt)}}G(t){let e=this.h.t;!e||t.t===e||(t.t=e,t.E=!1,t.y=String(this.ft()),this.h._(e,...t.me()))}Xt(t,e){if(this.e.clearTimeout(t.w),this.h.m)return;let n=()=>t.s.c?this.G(t):this.we(t);t.w=this.e.setTimeout(n,e)}we(t){this.O.delete(t),this.r(t),t.ge()}r(t){t.t&&t.E&&this.i(t.t,t.M)}i(t,e){this.h._(t,"streamEnd",{streamID:e,reason:"clientUnsubscribed"})}Z(t,e){t.v(e);let{code:n,retryAfter:r}=e;if(t.s.c&&(n==="rateLimited"||n==="unavailable")){let s=r>0?Math.min(r,pt):1e3;this.Xt(t,s*(1+this.e.random()))}}H(){for(let t of this.O)t.s.c&&this.G(t)}D(t){for(let e of this.O)e.t===t&&e.Et()}L(t){if(this.h.m)for(let e of[...this.O])this.e.clearTimeout(e.w),this.Z(e,t)}Se({callID:t,error:e},n){let r=this.Ot(s=>s.t===n&&s.y===t);r&&e&&this.Yt(r,M(e))}Q(t,e,n){let{streamID:r}=e;if(t==="streamStart"){let o=this.Ot(c=>c.t===n&&c.y===e.callID);if(!o)return this.i(n,r);o.ve(e)||this.Zt(o,n,r,"begin anew");return}let s=this.Ot(o=>o.t===n&&o.M===r);if(s){if(t==="streamData"){if(!s.E||s.ye(e))return;if(s.Y)return this.Zt(s,n,r,"did not come");s.kt(),s.t=void 0,this.G(s)}else if(t==="streamError")this.Yt(s,M(e));else if(t==="streamEnd"){let{reason:o}=e;o==="serverDraining"||o==="connectionClosed"?s.Et():o==="actorTerminated"?this.Z(s,new p("actorNotFound","the actor is gone")):this.Z(s,new p("unavailable","the stream has ended: "+o))}}}Yt(t,e){e.code==="unavailable"&&t.t!==this.h.t?t.Et():this.Z(t,e)}Zt(t,e,n,r){this.i(e,n),this.Z(t,new p("overflow",`events of ${t.xt.actorID} ${r}`))}Ot(t){for(let e of this.O)if(t(e))return e}};function mt(i,t={}){let e={...Y(),...t.environment},n=t.json??JSON,r=String(new URL(i,globalThis.location?.href)).replace(/^http/,"ws"),s=0,o=()=>++s,c=new R(e,o),f=new j(t,e,n,o,c.pt),v=new N(r,t,e,n,{H:()=>c.H(),$:h=>f.$(h),Q(h,d,l){h!=="response"?c.Q(h,d,l):f.oe(d)||c.Se(d,l),h!=="streamData"&&f.N()},D(h,d){c.D(h),f.D(h,d)},L(h){f.L(h),c.L(h)},mt:h=>f.mt(h)});f.h=c.h=v;let b=(h,{target:d,value:l})=>new E(c,c.a({actorID:h,targetIdentifier:d},!1),l),a=(h,{target:d,value:l})=>new $(c,c.a({actorID:h,targetIdentifier:d},!0),l,t.eventBuffer??1e3),u=h=>{let d=new Map;return{call:(l,w=[],S)=>f.et(h,{target:l},w,S),state(l="observeState"){return d.has(l)||d.set(l,b(h,{target:l})),d.get(l)},events:l=>a(h,{target:l})}},m=(h,d)=>{let l={};for(let[S,g]of Object.entries(h.methods??{})){let O=g.target.split(":").length-1;l[S]=(...y)=>{let T=Array.from({length:O},(q,rt)=>y[rt]);return f.et(d,g,T,y[O])}}let w=(S,g={})=>{for(let[O,y]of Object.entries(g)){let T;Object.defineProperty(l,O,{get:()=>T??=S(d,y),enumerable:!0})}};return w(b,h.states),w(a,h.events),l};return{status:v.u,actor:(h,d)=>d===void 0?u(h):m(h,d),reconnect:()=>v.ue(),close:()=>v.de()}}function vt(i){return i}var yt=Symbol.for("trebuchet.number"),U=class{constructor(t){this.text=t}get[yt](){return!0}toString(){return this.text}valueOf(){return Number(this.text)}toJSON(){return 0n}};function V(i){let t=new WeakMap;return e=>{if(typeof e!="object"||!e)return i(e);let n=t.get(e);return n===void 0&&t.set(e,n=i(e)),n}}var nt={read:i=>i,write:i=>i};function K(i,t){return Object.fromEntries(Object.entries(i).map(([e,n])=>[e,t(n,e)]))}var gt={read:i=>new Date(i),write:i=>i.toISOString()},bt={read:i=>Uint8Array.from(atob(i),t=>t.charCodeAt(0)),write:i=>btoa(Array.from(i,t=>String.fromCharCode(t)).join(""))},wt={read:i=>BigInt(String(i)),write:i=>Number.isSafeInteger(Number(i))?Number(i):i},St={read:String,write:i=>i.replace(/\D/g,"").length<16?Number(i):new U(i)};function Tt(i){return{read:V(t=>t.map(e=>i.read(e))),write:t=>t.map(e=>i.write(e)),part:()=>i}}function Ct(i){return{read:V(t=>K(t,e=>i.read(e))),write:t=>K(t,e=>i.write(e)),part:()=>i}}function xt(i=nt,t=nt){let e=n=>n%2?t:i;return{read:V(n=>{let r=new Map;for(let s=0;s<n.length;s+=2)r.set(i.read(n[s]),t.read(n[s+1]));return r}),write:n=>[...n].flatMap(([r,s])=>[i.write(r),t.write(s)]),part:n=>e(Number(n))}}function it(i){let t=n=>Object.hasOwn(i,n)?i[n]:void 0,e=(n,r)=>K(n,(s,o)=>s==null?s:t(o)?.[r](s)??s);return{read:V(n=>e(n,"read")),write:n=>e(n,"write"),part:t}}var kt=it;function Et(i){return{read:t=>t==null?null:i.read(t),write:t=>t==null?null:i.write(t),part:t=>i.part?.(t)}}function Ot(i){return{read:t=>i().read(t),write:t=>i().write(t),part:t=>i().part?.(t)}}export{p as TrebuchetError,vt as actorType,Tt as array,wt as bigint,mt as connect,bt as data,gt as date,St as decimal,Ot as lazy,xt as map,Et as nullable,Ct as record,it as struct,kt as union};

"""####

    /// The client of the services.
    static let services: StaticString = ""

    /// The page at `/` of `trebuchet serve`.
    static let start: StaticString = ####"""
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Trebuchet</title>
<link rel="icon" href="data:,">
<style>
:root {
    color-scheme: light dark;
    --page: #f6f4ef; --card: #fffdf8; --ink: #23211c; --soft: #736d60; --line: #e3ddcf; --accent: #b4532a; --good: #3c7a4d;
}
@media (prefers-color-scheme: dark) {
    :root { --page: #1a1917; --card: #242220; --ink: #ece7db; --soft: #9d9686; --line: #3a3733; --accent: #e2875b; --good: #7cc08f; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 40rem; margin: 0 auto; padding: clamp(1.5rem, 6vw, 4rem) 1.25rem; }
header { display: flex; align-items: baseline; justify-content: space-between; gap: 1rem; }
h1 { font-size: 1.6rem; letter-spacing: -.02em; margin: 0; }
h2 { font-size: 1rem; margin: 2.5rem 0 .5rem; }
p { margin: .35rem 0 1.25rem; color: var(--soft); }
#status { font-size: .85rem; color: var(--soft); white-space: nowrap; }
#status::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .45em; border-radius: 50%; background: var(--accent); }
#status[data-phase=live]::before { background: var(--good); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 14px; overflow: hidden; box-shadow: 0 1px 3px #0001; }
form { display: flex; border-bottom: 1px solid var(--line); }
input[type=text] { flex: 1; min-width: 0; border: 0; background: none; color: inherit; font: inherit; padding: .95rem 1.1rem; }
input[type=text]::placeholder { color: var(--soft); opacity: .8; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
button { border: 0; background: none; color: var(--accent); font: inherit; font-weight: 600; padding: 0 1.1rem; cursor: pointer; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: flex; align-items: center; border-bottom: 1px solid var(--line); }
li:last-child { border-bottom: 0; }
li label { flex: 1; min-width: 0; display: flex; gap: .75rem; align-items: center; padding: .7rem 1.1rem; cursor: pointer; overflow-wrap: anywhere; }
li input { accent-color: var(--accent); width: 1.1rem; height: 1.1rem; margin: 0; flex: none; }
li.done span { color: var(--soft); text-decoration: line-through; }
li button { font-weight: 400; color: var(--soft); padding: .7rem 1.1rem; }
#empty, #error { padding: .9rem 1.1rem; margin: 0; }
#error { color: var(--accent); }
[hidden] { display: none !important; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem; overflow-x: auto; font: .85rem/1.5 ui-monospace, monospace; margin: .35rem 0 1rem; }
a { color: var(--accent); }
</style>
</head>
<body>
<main>
<header><h1>Trebuchet</h1><span id="status" role="status">connecting</span></header>
<p>Everybody who opens this page shares one list. Open it in a second window and look.</p>
<section class="card" aria-label="To do">
    <form id="form" autocomplete="off">
        <input id="title" type="text" placeholder="What is to be done?" aria-label="What is to be done?" maxlength="200" required>
        <button>Add</button>
    </form>
    <ul id="list"></ul>
    <p id="empty" hidden>Nothing to do.</p>
    <p id="error" role="alert" hidden></p>
</section>

<h2>From a terminal</h2>
<pre id="commands">trebuchet call todos 'addTodo(title:)' '"Milk"'
trebuchet observe todos observeState</pre>

<h2>A page of your own</h2>
<p>Save this as <code>public/index.html</code> and start <code>trebuchet serve --static public</code>. There is nothing to build.</p>
<pre id="sample">&lt;!doctype html&gt;
&lt;pre id="out"&gt;&lt;/pre&gt;
&lt;script type="module"&gt;
import { connect } from "/trebuchet.js"

const todos = connect("/").actor("todos")
const state = todos.state("observeState")
state.subscribe(() =&gt; {
    out.textContent = JSON.stringify(state.getSnapshot(), null, 2)
})
await todos.call("addTodo(title:)", ["Written by my page"])
&lt;/script&gt;</pre>

<h2>An actor of your own</h2>
<p>The list is a Swift actor of forty lines. Write yours, and <code>server.pages(try .folder("public"), .clientLibrary)</code> serves your page beside it. What this server hosts stands in <a href="/schema.json">/schema.json</a>.</p>
</main>

<script type="module">
const $ = id => document.getElementById(id)

function fail(error) {
    $("error").textContent = error ? error.message || String(error) : ""
    $("error").hidden = !error
}

function row(item, todos) {
    const [line, label, box, text, remove] = ["li", "label", "input", "span", "button"].map(name => document.createElement(name))
    line.className = item.isDone ? "done" : ""
    box.type = "checkbox"
    box.checked = item.isDone
    // The list changes when the server has changed it: the box shows what is so.
    box.addEventListener("change", () => todos.call("toggleTodo(id:)", [item.id]).then(() => fail(), error => {
        box.checked = item.isDone
        fail(error)
    }))
    text.textContent = item.title
    remove.type = "button"
    remove.textContent = "×"
    remove.setAttribute("aria-label", `Remove ${item.title}`)
    remove.addEventListener("click", () => todos.call("removeTodo(id:)", [item.id]).then(() => fail(), fail))
    label.append(box, text)
    line.append(label, remove)
    return line
}

try {
    const { connect } = await import("/trebuchet.js")
    const client = connect("/")
    const todos = client.actor("todos")
    const state = todos.state("observeState")

    // Rows are kept by the item that they show: of what did not change, the client gives the same object.
    let rows = new Map()
    function show() {
        const items = state.getSnapshot()?.todos ?? []
        const next = new Map()
        for (const item of items) next.set(item, rows.get(item) ?? row(item, todos))
        rows = next
        $("list").replaceChildren(...rows.values())
        $("empty").hidden = items.length > 0 || state.getSnapshot() === undefined
    }
    function tell() {
        const { phase, error } = client.status.getSnapshot()
        $("status").textContent = phase
        $("status").dataset.phase = phase
        const failed = state.status.getSnapshot()
        fail(phase === "refused" ? error : failed.phase === "failed" ? failed.error : undefined)
    }
    state.subscribe(show)
    state.status.subscribe(tell)
    client.status.subscribe(tell)
    show()
    tell()

    $("form").addEventListener("submit", async event => {
        event.preventDefault()
        const title = $("title").value.trim()
        if (!title) return
        $("title").value = ""
        try {
            await todos.call("addTodo(title:)", [title], { idempotent: true })
            fail()
        } catch (error) {
            $("title").value = title
            fail(error)
        }
    })
} catch (error) {
    $("status").textContent = "no client library"
    fail(error)
}
</script>
</body>
</html>

"""####
}
