//! The style sheet of the page. Colours are variables, so that the dark scheme is one block.

/// Everything but the figures.
pub(super) const PAGE_CSS: &str = r#":root{color-scheme:light dark;--ground:#ffffff;--text:#1b1f24;--muted:#57606a;--line:#d5dae0;
--soft:#f4f6f8;--link:#0062a3;--better:#00694c;--worse:#b03a00;--warn-ground:#fff1e0;--warn-line:#d55e00;--warn-text:#6b2c00}
@media screen and (prefers-color-scheme:dark){:root{--ground:#14181d;--text:#e6e9ee;--muted:#a3adb9;--line:#363e48;
--soft:#1c2229;--link:#6bb7ec;--better:#4fd1a8;--worse:#ff9a62;--warn-ground:#3a2412;--warn-line:#f28a46;--warn-text:#ffd9bd}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--text);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1160px;margin:0 auto;padding:32px 24px 48px}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .5rem;letter-spacing:-.01em}
h2{font-size:1.3rem;line-height:1.3;margin:2.4rem 0 .6rem;padding-top:.9rem;border-top:1px solid var(--line)}
p{margin:.5rem 0;max-width:78ch}
.intro{color:var(--muted)}
a{color:var(--link)}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:1.2rem 0 0;padding:0;list-style:none;font-size:.92rem}
.warning{margin:1.1rem 0;padding:.8rem 1rem;border-left:6px solid var(--warn-line);border-radius:4px;
background:var(--warn-ground);color:var(--warn-text);font-size:1.08rem}
.warning strong{margin-right:.4rem;text-transform:uppercase;letter-spacing:.04em;font-size:.85em}
.table{margin:1.2rem 0}
.caption{font-weight:600;margin:0 0 .4rem}
.scroll{overflow-x:auto;-webkit-overflow-scrolling:touch;border:1px solid var(--line);border-radius:6px}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:.86rem;line-height:1.3;font-variant-numeric:tabular-nums}
th,td{padding:.42rem .5rem;text-align:left;white-space:nowrap;border-bottom:1px solid var(--line);vertical-align:baseline}
tbody tr:last-child th,tbody tr:last-child td{border-bottom:0}
thead th{background:var(--soft);color:var(--muted);font-weight:600;font-size:.8rem}
.groups th{text-align:center;color:var(--text);border-bottom:0;padding-bottom:0}
tbody th{font-weight:500}
th:first-child{position:sticky;left:0;z-index:1;background:var(--ground);border-right:1px solid var(--line)}
thead th:first-child{background:var(--soft)}
.groups th:first-child{border-right:0}
.right{text-align:right}
th.start,td.start{border-left:1px solid var(--line)}
td small{display:block;color:var(--muted);font-size:.84em;font-weight:400}
td small.better{color:var(--better);font-weight:600}
td small.worse{color:var(--worse);font-weight:600}
td strong{font-weight:700}
.none{color:var(--muted)}
.better{color:var(--better);font-weight:600}
.worse{color:var(--worse);font-weight:600}
.even{color:var(--muted)}
.footnote{color:var(--muted);font-size:.85rem;margin:.35rem 0 0;max-width:none}
.row{display:flex;flex-wrap:wrap;gap:1.2rem 1.6rem;align-items:flex-start}
.row>figure{flex:1 1 440px;max-width:calc(50% - .8rem);min-width:0}
.row>svg{flex:1 1 440px;max-width:min(100%,560px);min-width:0}
figure{margin:1.2rem 0}
.row>figure{margin:.8rem 0}
svg.plot{display:block;width:100%;height:auto}
figcaption{color:var(--muted);font-size:.88rem;line-height:1.45;margin-top:.4rem;max-width:78ch}
pre{overflow-x:auto;background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.8rem 1rem;font-size:.82rem;line-height:1.45}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
code{overflow-wrap:anywhere;font-size:.9em}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.3rem 1.2rem;font-size:.92rem;margin:.6rem 0}
dt{color:var(--muted)}
dd{margin:0;overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--link);font-size:.92rem}
@media screen and (max-width:760px){main{padding:18px 14px 32px}h1{font-size:1.5rem}h2{font-size:1.18rem;margin-top:1.8rem}
.row>figure,.row>svg{flex-basis:100%;max-width:100%}th,td{padding:.4rem .42rem}
tbody th{white-space:normal;min-width:6.5rem;max-width:8rem}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}}
@media print{main{max-width:none;padding:0}nav{display:none}figure,.table,.warning{break-inside:avoid}h2{break-after:avoid}
.scroll{overflow:visible;border:0}table{font-size:7.5pt}th,td{padding:2pt 3pt}body{font-size:10pt}
.row{display:block}.row>figure,.row>svg.plot{display:inline-block;vertical-align:top;width:48%;max-width:48%;margin:0 1% 8pt 0}
.row>figure svg.plot{width:100%;max-width:100%}}
"#;
